package cloudformation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/principaltest"
)

// A fake is CloudFormation in memory, of several accounts. It works while the clock goes on, and refuses what AWS refuses.
type fake struct {
	now func() time.Time
	// takes is how long each part of an operation takes.
	takes time.Duration
	// settles is how long IAM refuses a new key.
	settles time.Duration
	// room is how many stacks an account may have; 0 for any number.
	room int
	// emulated leaves the tokens out of events, as LocalStack does.
	emulated bool

	mu       sync.Mutex
	accounts map[string]*fakeAccount
	ids      int
}

func newFake(now func() time.Time) *fake {
	return &fake{now: now, takes: 2 * time.Second, accounts: map[string]*fakeAccount{}}
}

type fakeAccount struct {
	stacks    []*fakeStack // the deleted ones too
	templates map[string][]byte
	iam       *principaltest.Fake
	exports   map[string]string
}

// A fakeStack is one life of a name.
type fakeStack struct {
	stack
	params map[string]string
	body   string
	tokens map[string]bool
	used   bool // it holds something
	spared []string
	undo   func() // the last update
	items  int    // that it holds, and that keep it from being deleted
	// then are the statuses that come, each when its time is there.
	then []fakeEvent
	// failing: the next operation of the verb fails.
	failing       verb
	failingUpdate bool
}

type fakeEvent struct {
	event
	at time.Time
}

func (f *fake) account(name string) *fakeAccount {
	a := f.accounts[name]
	if a == nil {
		a = &fakeAccount{templates: map[string][]byte{}, iam: principaltest.New(name, f.now)}
		a.iam.Settles, a.iam.Page = f.settles, suitePage
		f.accounts[name] = a
	}
	for _, s := range a.stacks {
		f.settle(s)
	}
	return a
}

// settle has happen what is due.
func (f *fake) settle(s *fakeStack) {
	for len(s.then) > 0 && !f.now().Before(s.then[0].at) {
		e := s.then[0]
		s.then = s.then[1:]
		f.happen(s, e.event)
	}
}

func (f *fake) happen(s *fakeStack, e event) {
	f.ids++
	e.id = fmt.Sprintf("event-%d", f.ids)
	if f.emulated {
		e.token = ""
	}
	s.events = slices.Insert(s.events, 0, e)
	if e.whole {
		s.status = e.status
	}
}

// plans what is to happen, one after another.
func (f *fake) plans(s *fakeStack, token string, all ...event) {
	s.then = nil
	for n, e := range all {
		e.token = token
		if n == 0 {
			f.happen(s, e)
			continue
		}
		s.then = append(s.then, fakeEvent{e, f.now().Add(time.Duration(n) * f.takes)})
	}
}

func whole(status string) event { return event{whole: true, logical: "stack", status: status} }

func part(status, reason string) event {
	return event{logical: "Bucket", kind: kindBucket, status: status, reason: reason}
}

func (a *fakeAccount) find(ref string) *fakeStack {
	for _, s := range a.stacks {
		if s.id == ref || s.name == ref && s.status != deleteComplete {
			return s
		}
	}
	return nil
}

func validation(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationError", Message: fmt.Sprintf(format, args...)}
}

func (f *fake) create(a *fakeAccount, o order) error {
	if there := a.find(o.name); there != nil {
		if there.tokens[o.token] {
			return nil
		}
		return &smithy.GenericAPIError{Code: "AlreadyExistsException", Message: "Stack [" + o.name + "] already exists"}
	}
	for _, s := range a.stacks {
		if s.name == o.name && s.tokens[o.token] { // of a stack that is gone
			return nil
		}
	}
	f.ids++
	s := &fakeStack{stack: stack{
		id: fmt.Sprintf("arn:aws:cloudformation:eu-central-1:111122223333:stack/%s/%d", o.name, f.ids), name: o.name,
		created: f.now(), role: o.role,
	}, tokens: map[string]bool{o.token: true}, body: o.body, used: true, params: map[string]string{}}
	s.set(o)
	a.stacks = append(a.stacks, s)
	if s.params["Fail"] == "create" || s.failing == callCreate {
		f.plans(s, o.token, whole(createInProgress), part(createInProgress, ""),
			part(createFailed, "User: arn:aws:iam::111122223333:role/x is not authorized to perform s3:CreateBucket"),
			whole(rollbackInProgress), whole(rollbackComplete))
		return nil
	}
	f.plans(s, o.token, whole(createInProgress), part(createInProgress, ""), part(createComplete, ""), whole(createComplete))
	return nil
}

func (s *fakeStack) set(o order) {
	s.labels = map[string]string{}
	for _, l := range o.labels {
		s.labels[l.Name] = l.Value
	}
	params := map[string]string{}
	for _, p := range o.parameters {
		if params[p.name] = p.value; p.keep {
			params[p.name] = s.params[p.name]
		}
	}
	s.params, s.parameters = params, map[string]bool{}
	for name := range params {
		s.parameters[name] = true
	}
	s.outputs = map[string]string{"Note": "the note " + params["Note"]}
	s.tags, _ = label.Read(s.labels)
	s.retained = s.labels[plan.LabelRetained] != ""
}

func (f *fake) change(a *fakeAccount, o order) error {
	s := a.find(o.id)
	switch {
	case s == nil || s.status == deleteComplete:
		return validation("Stack [%s] does not exist", o.id)
	case s.tokens[o.token]:
		return nil
	case !usable(s.status):
		return validation("Stack:%s is in %s state and can not be updated.", s.id, s.status)
	}
	was := *s
	s.set(o)
	if maps.Equal(was.params, s.params) && maps.Equal(was.labels, s.labels) && (o.body == "" || o.body == was.body) {
		return validation("No updates are to be performed.")
	}
	if o.body != "" {
		s.body = o.body
	}
	s.tokens[o.token], s.updated = true, f.now()
	s.undo = func() {
		s.params, s.labels, s.body, s.tags, s.outputs, s.parameters = was.params, was.labels, was.body, was.tags, was.outputs,
			was.parameters
	}
	if s.params["Fail"] == "update" || s.failing == callUpdate || s.failingUpdate {
		s.undo()
		end := []event{whole("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"), whole(updateRolledBack)}
		if s.failing == callUpdate || s.failing == callContinue {
			end = []event{whole(updateRollbackFailed)}
		}
		f.plans(s, o.token, append([]event{whole(updateInProgress), part(updateInProgress, ""),
			part(updateFailed, "Value 111122223333 is invalid"), whole("UPDATE_ROLLBACK_IN_PROGRESS")}, end...)...)
		return nil
	}
	f.plans(s, o.token, whole(updateInProgress), part(updateInProgress, ""), part(updateComplete, ""),
		whole("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"), whole(updateComplete))
	return nil
}

func (f *fake) remove(a *fakeAccount, o order) error {
	s := a.find(o.id)
	switch {
	case s == nil, s.tokens[o.token], strings.HasPrefix(s.status, deleteInProgress), s.status == deleteComplete:
		return nil
	case len(o.spared) > 0 && s.status != deleteFailed:
		return validation("Stack [%s] is in %s state: it retains nothing", s.id, s.status)
	case busy(s.status) && s.status != createInProgress && s.status != rollbackInProgress && s.status != reviewInProgress:
		return validation("Stack [%s] cannot be deleted while in status %s", s.id, s.status)
	}
	s.tokens[o.token] = true
	why := ""
	switch s.spared = o.spared; {
	case len(o.spared) > 0:
	case s.failing == callDelete:
		why = "It is protected: deletion protection"
	case s.items > 0 && !s.retained && s.status != createInProgress:
		why = "The bucket you tried to delete is not empty"
	}
	if why != "" {
		f.plans(s, o.token, whole(deleteInProgress), part(deleteFailed, why), whole(deleteFailed))
		return nil
	}
	f.plans(s, o.token, whole(deleteInProgress), whole(deleteComplete))
	return nil
}

func (f *fake) cancel(a *fakeAccount, o order) error {
	s := a.find(o.id)
	if s == nil || s.status != updateInProgress {
		return validation("CancelUpdateStack cannot be called from current stack status")
	}
	if !s.tokens[o.token] {
		s.tokens[o.token] = true
		s.undo()
		f.plans(s, o.token, whole("UPDATE_ROLLBACK_IN_PROGRESS"), part(updateFailed, "Resource update cancelled"),
			whole(s.undone(callCancel)))
	}
	return nil
}

func (f *fake) goOn(a *fakeAccount, o order) error {
	s := a.find(o.id)
	if s == nil || s.status != updateRollbackFailed && !s.tokens[o.token] {
		return validation("Stack:x is in %s state and can not continue rollback.", s.status)
	}
	if s.tokens[o.token] {
		return nil
	}
	s.tokens[o.token] = true
	f.plans(s, o.token, whole("UPDATE_ROLLBACK_IN_PROGRESS"), whole(s.undone(callContinue)))
	return nil
}

// undone is how a call ends that undoes an update.
func (s *fakeStack) undone(by verb) string {
	if s.failing == by {
		return updateRollbackFailed
	}
	return updateRolledBack
}

// A fakeClient is one process' way to one account.
type fakeClient struct {
	fake *fake
	at   string
	call func(ctx context.Context, name string, do func() error) error
	page int
}

// do makes one call, which is whole or not at all.
func (c fakeClient) do(ctx context.Context, name string, call func(a *fakeAccount) error) error {
	return c.call(ctx, name, func() error {
		c.fake.mu.Lock()
		defer c.fake.mu.Unlock()
		return call(c.fake.account(c.at))
	})
}

// read makes a call that changes nothing.
func read[T any](ctx context.Context, c fakeClient, name string, look func(a *fakeAccount) T) (seen T, err error) {
	err = c.do(ctx, name, func(a *fakeAccount) error { seen = look(a); return nil })
	return seen, err
}

func (c fakeClient) identify(ctx context.Context) (plan.Location, error) {
	return read(ctx, c, "identify", func(*fakeAccount) plan.Location {
		return plan.Location{Partition: "aws", Account: c.at, Region: "eu-central-1"}
	})
}

func (c fakeClient) look(ctx context.Context, ref string) (*stack, error) {
	return read(ctx, c, "look", func(a *fakeAccount) *stack {
		if s := a.find(ref); s != nil && s.status != deleteComplete {
			return s.copy()
		}
		return nil
	})
}

func (s *fakeStack) copy() *stack {
	out := s.stack
	out.events, out.labels = slices.Clone(s.events), maps.Clone(s.labels)
	return &out
}

func (c fakeClient) send(ctx context.Context, o order) error {
	return c.do(ctx, string(o.verb), func(a *fakeAccount) error {
		return map[verb]func(*fakeAccount, order) error{
			callCreate: c.fake.create, callUpdate: c.fake.change, callRetain: c.fake.change, callDelete: c.fake.remove,
			callCancel: c.fake.cancel, callContinue: c.fake.goOn,
		}[o.verb](a, o)
	})
}

// inside reads something of a stack; zero without it.
func inside[T any](ctx context.Context, c fakeClient, id string, what func(s *fakeStack) T) (T, error) {
	return read(ctx, c, "look", func(a *fakeAccount) (none T) {
		if s := a.find(id); s != nil {
			return what(s)
		}
		return none
	})
}

func (c fakeClient) story(ctx context.Context, id string, _ func(event) bool) ([]event, error) {
	return inside(ctx, c, id, func(s *fakeStack) []event { return slices.Clone(s.events) })
}

func (c fakeClient) list(ctx context.Context, asked func(string) bool, cursor string) (page []*stack, next string, err error) {
	err = c.do(ctx, "list", func(a *fakeAccount) error {
		sorted := slices.SortedFunc(slices.Values(a.stacks), func(x, y *fakeStack) int { return strings.Compare(x.id, y.id) })
		for _, s := range sorted {
			if s.status == deleteComplete || s.id <= cursor || !asked(s.name) {
				continue
			}
			if len(page) == c.page {
				next = page[len(page)-1].id
				break
			}
			page = append(page, s.copy())
		}
		return nil
	})
	return page, next, err
}

func (c fakeClient) room(ctx context.Context) (used, most int, err error) {
	used, err = read(ctx, c, "look", func(a *fakeAccount) (n int) {
		for _, s := range a.stacks {
			if s.status != deleteComplete {
				n++
			}
		}
		return n
	})
	return used, c.fake.room, err
}

func (c fakeClient) holds(ctx context.Context, id string) (string, error) {
	return inside(ctx, c, id, func(s *fakeStack) string {
		return map[bool]string{true: "Bucket holds objects"}[s.used || s.items > 0]
	})
}

func (c fakeClient) empty(ctx context.Context, id string) (bool, error) {
	err := c.do(ctx, "empty", func(a *fakeAccount) error {
		if s := a.find(id); s != nil {
			s.used, s.items = false, 0
		}
		return nil
	})
	return err == nil, err
}

func (c fakeClient) spare(ctx context.Context, s *stack, mark label.Label) ([]string, error) {
	err := c.do(ctx, "tag", func(a *fakeAccount) error {
		a.find(s.id).labels[mark.Name] = mark.Value // as those of what is in it
		return nil
	})
	return []string{"Bucket"}, err
}

func (c fakeClient) exports(ctx context.Context) (map[string]string, error) {
	return read(ctx, c, "look", func(a *fakeAccount) map[string]string { return a.exports })
}

func (c fakeClient) tagged(ctx context.Context, tag, of string) ([]string, error) {
	return read(ctx, c, "look", func(a *fakeAccount) []string {
		return slices.DeleteFunc([]string{a.exports[of+" "+tag]}, func(arn string) bool { return arn == "" })
	})
}

func (c fakeClient) save(ctx context.Context, _ bucket, digest string, body []byte) error {
	return c.do(ctx, "save", func(a *fakeAccount) error { a.templates[digest] = body; return nil })
}

func (c fakeClient) fetch(ctx context.Context, _ bucket, digest string) ([]byte, error) {
	return read(ctx, c, "look", func(a *fakeAccount) []byte { return a.templates[digest] })
}

func (c fakeClient) current(ctx context.Context, id string) ([]byte, error) {
	return inside(ctx, c, id, func(s *fakeStack) []byte { return []byte(s.body) })
}

// opens reports whether a key is accepted anywhere.
func (f *fake) opens(g *provider.Grant) bool {
	text := func(name string) string { s, _ := g.Credentials[name].(string); return s }
	for _, at := range []string{here, elsewhere} {
		iam := f.iam(at)
		if iam.Opens(text("access_key_id"), text("secret_access_key")) || iam.Assumes(text("role_arn"), text("external_id")) {
			return true
		}
	}
	return false
}

// iam has the principals of an account.
func (f *fake) iam(at string) *principaltest.Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.account(at).iam
}
