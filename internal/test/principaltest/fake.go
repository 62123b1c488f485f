// Package principaltest is a fake of AWS IAM for tests of whoever keeps principals. It
// does what no emulator here shows: a user has two keys at most, and its policies a
// size; a new key is refused for a while, and then accepted here and refused there;
// lists are late; keys and policies of a principal go first; an account is full one day;
// nothing is made without a boundary.
package principaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The limits of IAM.
const (
	maxKeys     = 2
	maxTags     = 50
	maxTagName  = 128
	maxTagValue = 256
	maxName     = 64
	maxPath     = 512
	usersQuota  = 5000
	rolesQuota  = 1000
)

var inlineLimit = map[plan.Principal]int{plan.User: 2048, plan.Role: 10240}

// A Fake is the IAM of one account.
type Fake struct {
	// Settles is how long a new key is refused; for as long again, it is accepted by
	// every other call only.
	Settles time.Duration
	// Lags is for how long lists do not show what was made or deleted.
	Lags time.Duration
	// Page is how many principals a list shows at most; 0 for as many as are asked for.
	Page int
	// Quota is how many users there may be; 0 for AWS's own.
	Quota int

	now      func() time.Time
	account  string
	mu       sync.Mutex
	standing map[plan.Principal]map[string]*entity
	deleted  []*entity
	keys     int // that there ever were
	proofs   int
}

// entity is a user or role.
type entity struct {
	kind          plan.Principal
	name, path    string
	tags          map[string]string
	trust         string
	created, gone time.Time
	policies      map[string]string
	keys          []*key
}

type key struct {
	id, secret string
	active     bool
	created    time.Time
}

// New makes an empty account.
func New(account string, now func() time.Time) *Fake {
	return &Fake{now: now, account: account, standing: map[plan.Principal]map[string]*entity{plan.User: {}, plan.Role: {}}}
}

func said(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Opens reports whether the account accepts a key for what the plan's policy allows.
func (f *Fake) Opens(id, secret string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.standing[plan.User] {
		for _, k := range e.keys {
			if k.id == id && k.secret == secret && secret != "" {
				return k.active && !f.now().Before(k.created.Add(2*f.Settles)) && e.allows()
			}
		}
	}
	return false
}

// allows reports whether there is a policy, and none that denies.
func (e *entity) allows() bool {
	for _, document := range e.policies {
		if strings.Contains(document, `"Deny"`) {
			return false
		}
	}
	return len(e.policies) > 0
}

// Assumes reports whether a role can be assumed with an external id, and may do
// something then.
func (f *Fake) Assumes(arn, externalID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.standing[plan.Role] {
		if f.arn(e) == arn {
			return externalID != "" && strings.Contains(e.trust, `"sts:ExternalId":"`+externalID+`"`) && e.allows()
		}
	}
	return false
}

// Secrets counts what opens something below a path: active keys, and roles.
func (f *Fake) Secrets(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.below(path) {
		if e.kind == plan.Role && e.allows() {
			n++
		}
		for _, k := range e.keys {
			if k.active {
				n++
			}
		}
	}
	return n
}

// Look tells what stands below a path; empty if nothing does.
func (f *Fake) Look(path string) (text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.below(path) {
		text += fmt.Sprintf("%s %s: %v %v\n", e.kind, e.name, e.tags, e.policies)
	}
	return text
}

func (f *Fake) below(path string) (out []*entity) {
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		for _, name := range slices.Sorted(maps.Keys(f.standing[kind])) {
			if e := f.standing[kind][name]; strings.HasPrefix(e.path, path) {
				out = append(out, e)
			}
		}
	}
	return out
}

// Plant makes a principal without asking anybody.
func (f *Fake) Plant(kind plan.Principal, name, path string, tags provider.Tags) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standing[kind][name] = &entity{kind: kind, name: name, path: path, tags: labels(label.Write(tags)), created: f.now(),
		policies: map[string]string{}}
}

// AddKey gives a user a key that nobody records.
func (f *Fake) AddKey(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(f.standing[plan.User][user])
}

func labels(all []label.Label) map[string]string {
	out := map[string]string{}
	for _, l := range all {
		out[l.Name] = l.Value
	}
	return out
}

func (f *Fake) arn(e *entity) string {
	return fmt.Sprintf("arn:aws:iam::%s:%s%s%s", f.account, e.kind, e.path, e.name)
}

func (f *Fake) add(e *entity) *key {
	f.keys++
	k := &key{id: fmt.Sprintf("AKIA%016d", f.keys), secret: fmt.Sprintf("chosen by the cloud: %d", f.keys), active: true,
		created: f.now()}
	e.keys = append(e.keys, k)
	return k
}

// Client is one process' way to the account. It is a principal.IAM and a
// principal.Prover.
func (f *Fake) Client(calls *providertest.Calls) *Client {
	return f.By(func(ctx context.Context, _ string, do func() error) error { return calls.Call(ctx, do) })
}

// By is a Client whose calls are made by a function, which is told their names.
func (f *Fake) By(call func(ctx context.Context, name string, do func() error) error) *Client {
	return &Client{f, call}
}

// A Client is what Fake.Client gives.
type Client struct {
	f    *Fake
	call func(ctx context.Context, name string, do func() error) error
}

// do makes one call, which is whole or not at all.
func (c *Client) do(ctx context.Context, name string, call func(f *Fake) error) error {
	return c.call(ctx, name, func() error {
		c.f.mu.Lock()
		defer c.f.mu.Unlock()
		return call(c.f)
	})
}

// on makes a call about a principal that stands.
func (c *Client) on(
	ctx context.Context, verb string, kind plan.Principal, name string, call func(f *Fake, e *entity) error,
) error {
	return c.do(ctx, verb, func(f *Fake) error {
		e := f.standing[kind][name]
		if e == nil {
			return said("NoSuchEntity", "The %s with name %s cannot be found.", kind, name)
		}
		return call(f, e)
	})
}

func (f *Fake) found(e *entity) principal.Found {
	return principal.Found{Kind: e.kind, Name: e.name, ARN: f.arn(e), Created: e.created.Truncate(time.Second)}
}

// List implements principal.Principals.
func (c *Client) List(
	ctx context.Context, kind plan.Principal, path, cursor string, most int,
) (page []principal.Found, next string, err error) {
	err = c.do(ctx, "List", func(f *Fake) error {
		if f.Page > 0 {
			most = min(most, f.Page)
		}
		shown := map[string]*entity{}
		for _, e := range f.deleted {
			if f.now().Before(e.gone.Add(f.Lags)) {
				shown[string(e.kind)+e.name] = e
			}
		}
		for _, e := range f.below(path) {
			if !f.now().Before(e.created.Add(f.Lags)) {
				shown[string(e.kind)+e.name] = e
			}
		}
		for _, id := range slices.Sorted(maps.Keys(shown)) {
			e := shown[id]
			switch {
			case e.kind != kind || !strings.HasPrefix(e.path, path) || e.name <= cursor:
			case len(page) < most:
				page = append(page, f.found(e))
			default:
				next = page[most-1].Name
			}
		}
		return nil
	})
	return page, next, err
}

// Get implements principal.Principals.
func (c *Client) Get(ctx context.Context, kind plan.Principal, name string) (found principal.Found, err error) {
	err = c.on(ctx, "Get", kind, name, func(f *Fake, e *entity) error {
		found = f.found(e)
		found.Tags, found.Trust = maps.Clone(e.tags), e.trust
		return nil
	})
	return found, err
}

var names = regexp.MustCompile(`^[\w+=,.@-]+$`)

// Create implements principal.Principals.
func (c *Client) Create(ctx context.Context, kind plan.Principal, w principal.Wanted) error {
	return c.do(ctx, "Create", func(f *Fake) error {
		most := map[plan.Principal]int{plan.User: max(f.Quota, 0), plan.Role: rolesQuota}[kind]
		if most == 0 {
			most = usersQuota
		}
		switch {
		case f.standing[kind][w.Name] != nil:
			return said("EntityAlreadyExists", "%s with name %s already exists.", kind, w.Name)
		case !names.MatchString(w.Name) || len(w.Name) > maxName || len(w.Path) > maxPath || !strings.HasPrefix(w.Path, "/") ||
			!strings.HasSuffix(w.Path, "/"):
			return said("ValidationError", "the name or the path is not valid")
		case w.Boundary == "":
			return said("AccessDenied", "not authorized to perform: iam:Create without a permissions boundary")
		case len(f.standing[kind]) >= most:
			return said("LimitExceeded", "Cannot exceed quota for UsersPerAccount: %d", most)
		case kind == plan.Role && !json.Valid([]byte(w.Trust)):
			return said("MalformedPolicyDocument", "the trust policy is not JSON")
		}
		tags, err := tagged(map[string]string{}, w.Tags)
		if err != nil {
			return err
		}
		e := &entity{kind: kind, name: w.Name, path: w.Path, tags: tags, created: f.now(), policies: map[string]string{}}
		if kind == plan.Role {
			e.trust = w.Trust
		}
		f.standing[kind][w.Name] = e
		return nil
	})
}

// tagged gives tags with others, if IAM takes them.
func tagged(tags map[string]string, more []label.Label) (map[string]string, error) {
	out, seen := maps.Clone(tags), map[string]bool{}
	for _, l := range more {
		switch {
		case l.Name == "" || utf8.RuneCountInString(l.Name) > maxTagName || !taggable(l.Name),
			utf8.RuneCountInString(l.Value) > maxTagValue || !taggable(l.Value):
			return nil, said("ValidationError", "the tag %q is not valid", l.Name)
		case seen[strings.ToLower(l.Name)]:
			return nil, said("InvalidInput", "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		seen[strings.ToLower(l.Name)] = true
		out[l.Name] = l.Value
	}
	if len(out) > maxTags {
		return nil, said("LimitExceeded", "Cannot exceed quota for TagsPerEntity: %d", maxTags)
	}
	return out, nil
}

// taggable reports whether IAM takes a text in tags.
func taggable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.Z, unicode.N) && !strings.ContainsRune("_.:/=+-@", r)
	})
}

// SetTrust implements principal.Principals.
func (c *Client) SetTrust(ctx context.Context, role, document string) error {
	return c.on(ctx, "SetTrust", plan.Role, role, func(_ *Fake, e *entity) error {
		if !json.Valid([]byte(document)) {
			return said("MalformedPolicyDocument", "the trust policy is not JSON")
		}
		e.trust = document
		return nil
	})
}

// SetTags implements principal.Principals.
func (c *Client) SetTags(ctx context.Context, kind plan.Principal, name string, tags []label.Label) error {
	return c.on(ctx, "SetTags", kind, name, func(_ *Fake, e *entity) error {
		all, err := tagged(e.tags, tags)
		if err == nil {
			e.tags = all
		}
		return err
	})
}

// DropTags implements principal.Principals.
func (c *Client) DropTags(ctx context.Context, kind plan.Principal, name string, tags ...string) error {
	return c.on(ctx, "DropTags", kind, name, func(_ *Fake, e *entity) error {
		for _, t := range tags {
			delete(e.tags, t)
		}
		return nil
	})
}

// Delete implements principal.Principals.
func (c *Client) Delete(ctx context.Context, kind plan.Principal, name string) error {
	return c.on(ctx, "Delete", kind, name, func(f *Fake, e *entity) error {
		if len(e.keys)+len(e.policies) > 0 {
			return said("DeleteConflict", "Cannot delete entity, must remove what hangs on it first.")
		}
		delete(f.standing[kind], name)
		e.gone = f.now()
		f.deleted = append(f.deleted, e)
		return nil
	})
}
