package platforms

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/secret"
)

// Default is the id and the name of the platform that every broker starts with.
const Default = "default"

// A Platform is a client that may use the broker.
type Platform struct {
	// ID is part of the key of every record of the platform, and never changes.
	ID string `json:"id,omitempty"`
	// Name is the name that operators use.
	Name string `json:"name,omitempty"`
	// Path stands before /v2 in the platform's URL and begins with a slash; empty for none.
	Path string `json:"path,omitempty"`
	Credential
	// Chosen says that an operator chose the password; otherwise it was generated here. A chosen
	// password is never printed.
	Chosen bool `json:"chosen,omitempty"`
	// Since is when the platform was given its password; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Previous are passwords that a rotation has replaced.
	Previous []Previous `json:"previous,omitempty"`
	// Offerings are those that the platform may see: the names of offerings, or of single plans as
	// offering/plan. Empty means all.
	Offerings []string `json:"offerings,omitempty"`
	// SignOn lets the platform's users see their instances by its login; nil unless the platform is
	// a Cloud Foundry with sign-on switched on.
	SignOn *SignOn `json:"signon,omitempty"`
	// Removed is when the platform lost its access; zero while it has access. If it is added again,
	// it still owns the instances that it made.
	Removed time.Time `json:"removed,omitzero"`
}

// A Previous is a replaced password that stays valid for a time.
type Previous struct {
	secret.Holder
	Password string    `json:"password"`
	Until    time.Time `json:"until"`
}

// matches reports whether a login is valid now.
func (p Platform) matches(username, password string, now time.Time) bool {
	until, known := p.Until(username, password)
	return known && (until.IsZero() || now.Before(until))
}

// Until returns until when a login is valid, and whether the password is the platform's, or was
// before a rotation. The time is zero for the current password, which does not expire. It compares
// with every password, even after one has matched.
func (p Platform) Until(username, password string) (until time.Time, known bool) {
	for _, old := range p.Previous {
		if (Credential{Username: p.Username, Password: old.Password}).matches(username, password) && old.Until.After(until) {
			until, known = old.Until, true
		}
	}
	if p.Credential.matches(username, password) {
		until, known = time.Time{}, true
	}
	return until, known && p.Removed.IsZero()
}

// A Registry is the list of platforms, the default platform first. It is stored as one document
// whose own members are those of the default platform: a document that has only a user name and a
// password is a registry of one platform.
type Registry struct {
	Platforms []Platform
	// OIDC is the operator's own login, for everybody whose platform has none; nil for none.
	OIDC *OIDC
}

type document struct {
	Platform
	Platforms []Platform `json:"platforms,omitempty"`
	OIDC      *OIDC      `json:"oidc,omitempty"`
}

// ErrDocument says that a document is not a registry. No error quotes the document.
var ErrDocument = errors.New(`not a JSON object with "username" and "password"`)

// Decode reads a registry.
func Decode(raw []byte) (Registry, error) {
	var d document
	if json.Unmarshal(raw, &d) != nil {
		return Registry{}, ErrDocument
	}
	d.ID, d.Name = Default, Default
	r := Registry{Platforms: append([]Platform{d.Platform}, d.Platforms...), OIDC: d.OIDC}
	return r, r.check()
}

// Encode returns the document that Decode reads.
func (r Registry) Encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	d := document{Platform: r.Platforms[0], Platforms: r.Platforms[1:], OIDC: r.OIDC}
	d.ID, d.Name = "", ""
	return json.Marshal(d)
}

// check refuses a registry in which platforms could be taken for one another.
func (r Registry) check() error {
	if len(r.Platforms) == 0 || r.Platforms[0].ID != Default {
		return ErrDocument
	}
	ids, names, users := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range r.Platforms {
		if p.Username == "" || p.Password == "" {
			return ErrDocument
		}
		if p.ID == "" || p.Name == "" || ids[p.ID] || names[p.Name] {
			return fmt.Errorf("platform %q has no id or name of its own", p.Name)
		}
		if live := p.Removed.IsZero(); live && users[p.Username] {
			return fmt.Errorf("platform %q has the user name of another one, %q", p.Name, p.Username)
		} else if live {
			users[p.Username] = true
		}
		if strings.Contains(p.Username, ":") { // RFC 7617
			return fmt.Errorf("the user name of platform %q has a colon", p.Name)
		}
		if p.Path != "" && CheckPath(p.Path) != nil {
			return fmt.Errorf("the path of platform %q is not valid", p.Name)
		}
		ids[p.ID], names[p.Name] = true, true
	}
	return nil
}

// valid reports whether a text can be an id, a name, or the part of a path after its slash.
func valid(name string) bool {
	return name != "" && len(name) <= 40 && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// CheckPath refuses a path that cannot stand before /v2.
func CheckPath(path string) error {
	if name, ok := strings.CutPrefix(path, "/"); !ok || !valid(name) || path == "/v2" || path == "/operations" {
		return fmt.Errorf("path %q is not valid: give a slash and up to 40 small letters, digits and hyphens, such as /cf-eu",
			path)
	}
	return nil
}

// find returns the platform with the name, as it stands in the registry.
func (r Registry) find(name string) (*Platform, error) {
	i := slices.IndexFunc(r.Platforms, func(p Platform) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no platform %q: `longshore platform list` names all", name)
	}
	return &r.Platforms[i], nil
}

// having returns the first platform that has access and meets a condition; an empty one for none.
func (r Registry) having(is func(Platform) bool) Platform {
	for _, p := range r.Platforms {
		if p.Removed.IsZero() && is(p) {
			return p
		}
	}
	return Platform{}
}

func (r Registry) clone() Registry {
	r.Platforms = slices.Clone(r.Platforms)
	return r
}

// changed returns the registry with a change to the platform of that name, which has access.
func (r Registry) changed(name string, change func(p *Platform)) (Registry, error) {
	next := r.clone()
	p, err := next.find(name)
	if err != nil {
		return r, err
	}
	if !p.Removed.IsZero() {
		return r, fmt.Errorf("platform %q was removed: only `longshore platform add %s` changes it", name, name)
	}
	change(p)
	return next, next.check()
}

// TakenBack returns the platform with the path, the offerings and the sign-on of the removed
// platform of the same name, if there is one. The arguments say whether a new path or new offerings
// were given; these are kept.
func (r Registry) TakenBack(p Platform, path, offerings bool) Platform {
	was, err := r.find(p.Name)
	if err != nil || was.Removed.IsZero() {
		return p
	}
	p.SignOn = was.SignOn
	if !path {
		p.Path = was.Path
	}
	if !offerings {
		p.Offerings = was.Offerings
	}
	return p
}

// Add gives a platform access. A removed platform comes back under its name, with the instances
// that it made and a new password. An ID is that of a platform which has records but may be unknown
// to this registry; without an ID, the platform gets newID.
func (r Registry) Add(p Platform, newID string, now time.Time) (Registry, error) {
	if !valid(p.Name) {
		return r, fmt.Errorf("name %q is not valid: give up to 40 small letters, digits and hyphens", p.Name)
	}
	if p.Path != "" {
		if err := CheckPath(p.Path); err != nil {
			return r, err
		}
	}
	r, p.Since = r.clone(), now.UTC().Truncate(time.Second)
	was, err := r.find(p.Name)
	if err == nil && was.Removed.IsZero() {
		return r, fmt.Errorf("platform %q exists: choose another name, or rotate its password", p.Name)
	}
	if other := r.having(func(other Platform) bool { return other.Username == p.Username }); other.Name != "" {
		return r, fmt.Errorf("the user name %q is that of platform %q: choose another name", p.Username, other.Name)
	}
	if err == nil {
		if p.ID != "" && p.ID != was.ID {
			return r, fmt.Errorf("platform %q was removed and comes back with its id %q, not %q", p.Name, was.ID, p.ID)
		}
		p.ID = was.ID
		*was = p
		return r, r.check()
	}
	if p.ID == "" {
		p.ID = newID
	}
	if err := r.checkID(p.ID); err != nil {
		return r, err
	}
	r.Platforms = append(r.Platforms, p)
	return r, r.check()
}

// checkID refuses an id that a new platform cannot have.
func (r Registry) checkID(id string) error {
	if !valid(id) {
		return fmt.Errorf("id %q is not valid: give one that a platform of this broker had, such as p-abcdefghijkl", id)
	}
	for _, p := range r.Platforms {
		switch {
		case p.ID != id:
		case p.Removed.IsZero():
			return fmt.Errorf("id %q is that of platform %q", id, p.Name)
		default:
			return fmt.Errorf("id %q is that of platform %q, which was removed: add it again under that name", id, p.Name)
		}
	}
	return nil
}

// EndOfOverlap returns until when a password that is rotated now stays valid: a whole second, as it
// is printed.
func EndOfOverlap(now time.Time, overlap time.Duration) time.Time {
	return now.Add(overlap).UTC().Truncate(time.Second)
}

// Rotate gives a platform a new password. The old one stays valid for the overlap, and earlier ones
// until their dates. An overlap of zero ends all of them at once, since one may have leaked.
func (r Registry) Rotate(name, password string, now time.Time, overlap time.Duration) (Registry, error) {
	return r.changed(name, func(p *Platform) {
		p.Previous = slices.DeleteFunc(slices.Clone(p.Previous), func(old Previous) bool {
			return overlap == 0 || !now.Before(old.Until)
		})
		if overlap > 0 {
			p.Previous = append(p.Previous, Previous{Password: p.Password, Until: EndOfOverlap(now, overlap)})
		}
		p.Password, p.Chosen, p.Since = password, false, now.UTC().Truncate(time.Second)
	})
}

// Remove ends a platform's access. Its id stays taken: no other platform may own the instances that
// it made.
func (r Registry) Remove(name string, now time.Time) (Registry, error) {
	return r.changed(name, func(p *Platform) { p.Removed, p.Previous = now.UTC().Truncate(time.Second), nil })
}
