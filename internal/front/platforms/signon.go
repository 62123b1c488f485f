package platforms

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/secret"
)

// A SignOn lets the users of a Cloud Foundry see their instances by its own login.
type SignOn struct {
	secret.Holder
	// Hosts are the origins of its API, its login and its UAA; no other host is asked.
	Hosts []string `json:"hosts"`
	// Client is a client that an operator made in the UAA; empty if the catalog has the platform
	// make one for each offering.
	Client string `json:"client,omitempty"`
	// Secret is the secret of Client, or the secret from which those of the catalog's clients are
	// derived. It is generated once: a redeployed broker must not lock people out.
	Secret string `json:"secret,omitempty"`
}

// ClientOf returns the client for the instances of an offering. Its id is unique in a UAA that
// several brokers share, since it is derived from the secret.
func (s *SignOn) ClientOf(offering string) (id, password string) {
	if s.Client != "" {
		return s.Client, s.Secret
	}
	derive := func(what string) []byte {
		h := hmac.New(sha256.New, []byte(s.Secret))
		_, _ = h.Write([]byte(what + " " + offering)) // never fails: see hash.Hash
		return h.Sum(nil)
	}
	return "longshore-" + hex.EncodeToString(derive("client")[:10]), base64.RawURLEncoding.EncodeToString(derive("secret"))
}

// An OIDC is a login of the operator's own: its claims about people decide what they may see.
type OIDC struct {
	secret.Holder
	Issuer string   `json:"issuer"`
	Client string   `json:"client_id"`
	Secret string   `json:"client_secret"`
	Scopes []string `json:"scopes,omitempty"` // besides openid
	Rules  []Rule   `json:"rules"`
}

// A Rule says what people may see if a claim of theirs is, or contains, a value.
type Rule struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
	// Platform is the name of the platform whose instances they see, or Every.
	Platform string `json:"platform,omitempty"`
	// Organization is the GUID of the organization on Cloud Foundry, or the namespace on
	// Kubernetes, whose instances they see; empty for all of the platform's. Names will not do:
	// they can be given to another organization.
	Organization string `json:"organization,omitempty"`
	// Acts also lets them order, on the pages of these instances, what a manager on the platform
	// may.
	Acts bool `json:"acts,omitempty"`
	// Console is RoleRead or RoleAct for people who see the operator's console.
	Console string `json:"console,omitempty"`
}

// Special values in rules.
const (
	Every    = "*"
	RoleRead = "read"
	RoleAct  = "act"
)

// holds reports whether the claims of a person meet the rule. An email address counts only if the
// login has verified it.
func (r Rule) holds(claims map[string]any) bool {
	if r.Claim == "email" && claims["email_verified"] != true {
		return false
	}
	switch has := claims[r.Claim].(type) {
	case string:
		return has == r.Value
	case []any:
		return slices.Contains(has, any(r.Value))
	}
	return false
}

// Instances reports whether a person may see the instances of an organization of a platform, and
// whether that person may act on their pages. A rule may name the organization by any of its ids.
func (o *OIDC) Instances(claims map[string]any, platform string, ids ...string) (reads, acts bool) {
	for _, r := range o.Rules {
		if (r.Platform == Every || r.Platform != "" && r.Platform == platform) &&
			(r.Organization == "" || slices.Contains(ids, r.Organization)) && r.holds(claims) {
			reads, acts = true, acts || r.Acts
		}
	}
	return reads, acts
}

// Console reports whether a person may see the operator's console, and whether that person may act
// there.
func (o *OIDC) Console(claims map[string]any) (reads, acts bool) {
	for _, r := range o.Rules {
		if r.Console != "" && r.holds(claims) {
			reads, acts = true, acts || r.Console == RoleAct
		}
	}
	return reads, acts
}

// DecodeOIDC decodes the operator's document. It refuses unknown members: a misspelled member must
// not widen a rule.
func DecodeOIDC(raw []byte) (*OIDC, error) {
	var o OIDC
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		// The cause may quote a secret.
		return nil, errors.New("it is not the JSON object that `longshore platform oidc --help` shows")
	}
	if o.Client == "" || o.Secret == "" || len(o.Rules) == 0 {
		return nil, errors.New("it lacks client_id, client_secret or rules")
	}
	if origin, err := Origin(o.Issuer); err != nil || !strings.HasPrefix(o.Issuer, origin) {
		return nil, fmt.Errorf("issuer %q is not an address that begins with https://", o.Issuer)
	}
	for _, r := range o.Rules {
		role := r.Console == RoleRead || r.Console == RoleAct
		if r.Claim == "" || r.Value == "" || (r.Platform == "") == (r.Console == "") || r.Console != "" && !role ||
			(r.Organization != "" || r.Acts) && r.Platform == "" {
			return nil, fmt.Errorf("the rule of claim %q needs a value, and either a platform (%q for every one) or "+
				"a console (%s or %s)", r.Claim, Every, RoleRead, RoleAct)
		}
	}
	return &o, nil
}

// Origin returns the scheme and the host of an address, or of a host alone. Plain HTTP is allowed
// to this machine only, such as http://127.0.0.1:PORT: elsewhere an eavesdropper would get the
// tokens.
func Origin(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !net.ParseIP(u.Hostname()).IsLoopback()) {
		return "", fmt.Errorf("%q is no host that can be asked: give one such as login.cf.example.com", address)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// usable returns nil if the secret was lost with the vault's key.
func (s *SignOn) usable() *SignOn {
	if s == nil || s.Secret == "" {
		return nil
	}
	return s
}

// Live returns the platform with the id, if it has access, with a sign-on that is usable or nil; an
// empty one for none.
func (r Registry) Live(id string) Platform {
	p := r.having(func(p Platform) bool { return p.ID == id })
	p.SignOn = p.SignOn.usable()
	return p
}

// WithSignOn switches a platform's sign-on on, or off if s is nil. A sign-on that makes its own
// clients, as before, keeps the secret from which theirs are derived.
func (r Registry) WithSignOn(name string, s *SignOn) (Registry, error) {
	return r.changed(name, func(p *Platform) {
		if was := p.SignOn.usable(); s != nil && s.Client == "" {
			made := *s
			made.Secret = NewPassword()
			if was != nil && was.Client == "" {
				made.Secret = was.Secret
			}
			s = &made
		}
		p.SignOn = s
	})
}

// WithOIDC sets the operator's login, or removes it if o is nil. The rules must name platforms of
// the registry.
func (r Registry) WithOIDC(o *OIDC) (Registry, error) {
	if o != nil {
		for _, rule := range o.Rules {
			if rule.Platform == "" || rule.Platform == Every {
				continue
			}
			if _, err := r.find(rule.Platform); err != nil {
				return r, err
			}
		}
	}
	r = r.clone()
	r.OIDC = o
	return r, nil
}

// Sealed returns the registry with the secret of each sign-on replaced by seal; the argument of is
// the platform's id, or empty for the operator's login.
func (r Registry) Sealed(seal func(of, secret string) (string, error)) (_ Registry, err error) {
	r = r.clone()
	for i, p := range r.Platforms {
		if p.SignOn == nil {
			continue
		}
		s := *p.SignOn
		if s.Secret, err = seal(p.ID, s.Secret); err != nil {
			return r, err
		}
		r.Platforms[i].SignOn = &s
	}
	if r.OIDC != nil {
		o := *r.OIDC
		if o.Secret, err = seal("", o.Secret); err != nil {
			return r, err
		}
		r.OIDC = &o
	}
	return r, nil
}
