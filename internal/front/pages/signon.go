package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/signon"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// PathCallback is the path that a login sends the browser back to.
const PathCallback = Prefix + "/callback"

// attemptTime is how long a person may take to sign on.
const attemptTime = 10 * time.Minute

// A SignOn opens sessions by means of logins.
type SignOn struct {
	// Registry returns the logins of the platforms and the operator's login.
	Registry func() platforms.Registry
	// Callback returns the address that a login sends browsers back to, which ends with
	// PathCallback; empty if it is not known where browsers reach the broker.
	Callback func(context.Context) string
	Finder   *signon.Finder
}

// An attempt is a sign-on in progress, which the browser keeps sealed until the login sends it
// back. It names a scope, whose page this broker chooses, rather than an address that somebody else
// could choose.
type attempt struct {
	signon.Attempt
	Scope Scope     `json:"o"`
	Until time.Time `json:"u"`
}

// attemptCookie returns the name of the cookie of one attempt: a browser may open several pages at
// once.
func attemptCookie(state string) string {
	return "__Host-longshore-at-" + state[:min(len(state), 8)]
}

// errNoLogin says that a scope has no login.
var errNoLogin = errors.New("it has no login")

// signOn redirects a browser to the login of a scope. It shows the other page instead if there is
// no login, or if the request does not navigate to a page: the script then loads the page again.
func (v *visit) signOn(of Scope, otherwise g.Node) {
	mode := v.Header.Get("Sec-Fetch-Mode")
	on, _, err := v.loginOf(v.SignOn.Registry(), of)
	if errors.Is(err, errNoLogin) || v.Method != http.MethodGet || mode != "" && mode != "navigate" {
		v.show(http.StatusUnauthorized, otherwise)
		return
	}
	if err != nil {
		v.failLogin(of, err)
		return
	}
	a := attempt{signon.NewAttempt(), of, v.Now().Add(attemptTime)} // to find the login may have taken a while
	plain, _ := json.Marshal(a)                                     // of texts and a time of now: these can always be encoded
	sealed, err := seal(v.Context(), v.Table, vault.Attempt, plain)
	if err != nil {
		v.fail(err)
		return
	}
	v.keep(attemptCookie(a.State), sealed, int(attemptTime/time.Second))
	v.lead(on.Begin(a.Attempt))
}

// loginOf returns the login of a scope in a registry: that of the instance's platform, or the operator's. The same
// registry must judge who comes from the login, since an operator may change the logins meanwhile.
func (v *visit) loginOf(in platforms.Registry, of Scope) (on *signon.Login, record lifecycle.Record, err error) {
	platform := in.Live(of.Platform).SignOn
	if in.OIDC == nil && (of.Console || platform == nil) { // anybody may ask: no record is read for that
		return nil, record, errNoLogin
	}
	back := v.SignOn.Callback(v.Context())
	if back == "" {
		return nil, record, errNoLogin
	}
	if !of.Console {
		key := lifecycle.Key{Platform: of.Platform, Instance: of.Instance}
		if record, err = v.Records.Record(v.Context(), key, v.now); err != nil {
			return nil, record, err
		}
	}
	switch {
	case of.Console || platform == nil:
		on, err = v.SignOn.Finder.OIDC(v.Context(), in.OIDC, back)
		return on, record, err
	case record.State == lifecycle.Absent:
		return nil, record, errNoLogin
	}
	api, err := v.Records.PlatformAPI(v.Context(), of.Platform)
	if err != nil {
		return nil, record, err
	}
	if !slices.Contains(platform.Hosts, api.Origin) {
		return nil, record, fmt.Errorf("%w: platform %q has sent no X-Api-Info-Location of a listed host", signon.ErrDown,
			of.Platform)
	}
	on, err = v.SignOn.Finder.CloudFoundry(v.Context(), platform, api.Origin, record.Attributes.ServiceID, back)
	return on, record, err
}

// callback answers the request with which a login sends a browser back. It records the state as
// used before it exchanges the code: of two requests with the same state, one continues.
func (v *visit) callback() {
	a, err := v.attempted()
	if err == nil {
		v.keep(attemptCookie(a.State), "", -1)
	}
	if !v.uses(a.State, a.Until, err, "This sign-on cannot be used", "It was used before, has taken longer than "+
		"10 minutes, or was begun in another browser. Open the page again; allow its cookies.") {
		return
	}
	granted, person, err := v.granted(a)
	if err != nil {
		v.failLogin(a.Scope, err)
		return
	}
	v.open(granted, person)
}

// attempted returns the attempt that a browser comes back from.
func (v *visit) attempted() (a attempt, _ error) {
	state := v.URL.Query().Get("state")
	kept, err := v.Cookie(attemptCookie(state))
	if err != nil {
		return a, errToken
	}
	plain, err := open(v.Context(), v.Table, vault.Attempt, kept.Value)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(plain, &a); err != nil || a.State != state {
		return a, errToken
	}
	return a, nil
}

// granted returns the scope that the person who comes back from a login may have, and the id of
// that person.
func (v *visit) granted(a attempt) (_ Scope, who string, _ error) {
	q := v.URL.Query()
	if q.Get("error") != "" || q.Get("code") == "" {
		return a.Scope, "", fmt.Errorf("%w: it sends the browser back without a code", signon.ErrRefused)
	}
	registry := v.SignOn.Registry()
	on, record, err := v.loginOf(registry, a.Scope)
	if err != nil {
		return a.Scope, "", err
	}
	person, err := on.Finish(v.Context(), a.Attempt, q.Get("code"))
	if err != nil {
		return a.Scope, "", err
	}
	may, platform := false, registry.Live(a.Scope.Platform)
	switch {
	case a.Scope.Console:
		may, a.Scope.Acts = registry.OIDC.Console(person.Claims)
	case platform.SignOn != nil:
		may, a.Scope.Acts, err = on.Permissions(v.Context(), person, a.Scope.Instance)
	default:
		// Neither can be given to another organization, as names can. A platform on Kubernetes sends both: the API
		// requires the GUID.
		may, a.Scope.Acts = registry.OIDC.Instances(person.Claims, platform.Name,
			record.Attributes.OrganizationGUID, v.namesOf(record).Namespace)
	}
	if err == nil && !may {
		err = errNotAllowed
	}
	return a.Scope, person.ID, err
}

// errNotAllowed says that a person who has signed on may not see the page.
var errNotAllowed = errors.New("not allowed")

// failLogin shows why a sign-on failed, and how to try again: it never redirects to the login by
// itself.
func (v *visit) failLogin(of Scope, err error) {
	switch {
	case errors.Is(err, errNotAllowed):
		v.show(http.StatusForbidden, message("You may not see this page",
			"Your login is known, but has no permission for it. On Cloud Foundry, members of "+
				"the instance's space have it; elsewhere, ask the operator of the broker."))
	case errors.Is(err, errNoLogin):
		v.show(http.StatusForbidden, message("This sign-on cannot be used", "Its login was switched off meanwhile. "+
			"Ask the operator of the broker for a link."))
	case errors.Is(err, signon.ErrRefused):
		v.Log.WarnContext(v.Context(), "a sign-on failed", "error", err)
		v.show(http.StatusForbidden, message("You are not signed on", "The login did not let you in.", again(of)))
	case errors.Is(err, signon.ErrDown):
		v.Log.ErrorContext(v.Context(), "nobody can sign on", "error", err)
		v.show(http.StatusServiceUnavailable, message("Nobody can sign on now",
			"The platform's login does not answer. Try again in a minute; if this lasts, tell the operator.", again(of)))
	default:
		v.fail(err)
	}
}

// Locate records where the API of a platform is, if that is one of its listed hosts: the platform's
// sign-on begins there. The location is only the claim of a header; the request that carries it
// goes on in any case.
func (s *Server) Locate(ctx context.Context, platform platforms.Identity, location string) {
	said := location + " " + strings.Join(platform.SignOn.Hosts, " ") // an operator may list its host later
	if known, ok := s.located.Load(platform.ID); ok && known == said {
		return
	}
	origin, err := platforms.Origin(location)
	if err != nil || !slices.Contains(platform.SignOn.Hosts, origin) {
		s.Log.WarnContext(ctx, "a platform's API is at a host that is not listed for its sign-on", "platform", platform.ID)
		s.located.Store(platform.ID, said) // one line in the log per location, not per request
		return
	}
	was, err := s.Records.PlatformAPI(ctx, platform.ID)
	if err == nil && was.Origin != origin {
		was.Origin = origin
		err = s.Records.Commit(ctx, ledger.Put(was))
	}
	if err != nil {
		s.Log.WarnContext(ctx, "the address of a platform's API was not recorded; the next request retries", "error", err)
		return
	}
	s.located.Store(platform.ID, said)
}
