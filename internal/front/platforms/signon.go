package platforms

import (
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

// A SignOn lets the people of a Cloud Foundry see their instances by its own login.
type SignOn struct {
	secret.Holder
	// Hosts are the origins of its API, its login and its UAA: no other is asked.
	Hosts []string `json:"hosts"`
	// Client is one that an operator made in the UAA; empty where the catalog has the platform
	// make one for each offering.
	Client string `json:"client,omitempty"`
	// Secret is Client's, or what the catalog's clients derive from. It is made once: a
	// redeployed broker must not lock people out.
	Secret string `json:"secret,omitempty"`
}

// ClientOf is the client for the instances of an offering. Ids are unique in a UAA that several
// brokers share, since the secret that they derive from is.
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

// An OIDC is a login of the operator's: people who prove themselves there see what their claims
// allow.
type OIDC struct {
	secret.Holder
	Issuer string   `json:"issuer"`
	Client string   `json:"client_id"`
	Secret string   `json:"client_secret"`
	Scopes []string `json:"scopes,omitempty"` // beside openid
	Rules  []Rule   `json:"rules"`
}

// A Rule says what people see whose claim is, or has, a value.
type Rule struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
	// Platform is the name of the one whose instances they see, or Every.
	Platform string `json:"platform,omitempty"`
	// Organization is the GUID of the one on Cloud Foundry, or the namespace on Kubernetes, whose
	// instances they see; empty for all of the platform's. Names can be given to another one.
	Organization string `json:"organization,omitempty"`
	// Acts lets them order on the pages of these instances what a platform's manager may.
	Acts bool `json:"acts,omitempty"`
	// Console is RoleRead or RoleAct for who sees the operator's console.
	Console string `json:"console,omitempty"`
}

// The words of rules.
const (
	Every    = "*"
	RoleRead = "read"
	RoleAct  = "act"
)

// holds reports whether the claims of a person meet the rule. An address counts once the login has
// checked that it is the person's.
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

// Instances says whether a person sees the instances of an organization of a platform, and whether
// he acts on their pages.
func (o *OIDC) Instances(claims map[string]any, platform, organization string) (reads, acts bool) {
	for _, r := range o.Rules {
		if (r.Platform == Every || r.Platform != "" && r.Platform == platform) &&
			(r.Organization == "" || r.Organization == organization) && r.holds(claims) {
			reads, acts = true, acts || r.Acts
		}
	}
	return reads, acts
}

// Console says whether a person reads the operator's console, and whether he acts there.
func (o *OIDC) Console(claims map[string]any) (reads, acts bool) {
	for _, r := range o.Rules {
		if r.Console != "" && r.holds(claims) {
			reads, acts = true, acts || r.Console == RoleAct
		}
	}
	return reads, acts
}

// DecodeOIDC reads what an operator wrote. A misspelled member must not widen a rule.
func DecodeOIDC(raw []byte) (*OIDC, error) {
	var o OIDC
	d := json.NewDecoder(strings.NewReader(string(raw)))
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

// Origin is the scheme and the host of an address, or of a host alone. In clear only this machine
// is reached, by http://127.0.0.1:PORT: who listens on the way would have the tokens.
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

// SignOnOf is the sign-on of a platform; nil for none.
func (r Registry) SignOnOf(id string) *SignOn {
	for _, p := range r.Platforms {
		if p.ID == id && p.Removed.IsZero() {
			return p.SignOn.usable()
		}
	}
	return nil
}

// usable is nil where the secret was lost with the vault's key.
func (s *SignOn) usable() *SignOn {
	if s == nil || s.Secret == "" {
		return nil
	}
	return s
}

// NameOf is the name of a platform that has access; empty for none.
func (r Registry) NameOf(id string) string {
	for _, p := range r.Platforms {
		if p.ID == id && p.Removed.IsZero() {
			return p.Name
		}
	}
	return ""
}

// WithSignOn switches a platform's sign-on on, or off with nil. One that goes on making its own
// clients keeps the secret that they derive from.
func (r Registry) WithSignOn(name string, s *SignOn) (Registry, error) {
	i, err := r.find(name)
	if err != nil {
		return r, err
	}
	r = r.clone()
	if was := r.Platforms[i].SignOn.usable(); s != nil && s.Client == "" {
		made := *s
		made.Secret = NewPassword()
		if was != nil && was.Client == "" {
			made.Secret = was.Secret
		}
		s = &made
	}
	r.Platforms[i].SignOn = s
	return r, nil
}

// WithOIDC sets the operator's login; nil for none. Its rules name platforms of the registry.
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

// Sealed gives the registry with each secret of a sign-on as seal makes it; of names whose it is.
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
