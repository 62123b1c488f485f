package osb_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// severalPlatforms is a server of platforms that have the password "p:w".
func severalPlatforms(t *testing.T, b osb.Broker) *osb.Server {
	t.Helper()
	s := newServer(t, b, io.Discard)
	s.Platforms = several{
		"root": {ID: "p-root"}, "eu": {ID: "p-eu", Path: "/cf-eu"},
		"narrow": {ID: "p-narrow", Offerings: []string{"first/a", "third", "gone"}},
		"blind":  {ID: "p-blind", Offerings: []string{"gone"}},
	}
	s.Offerings = func() []catalog.Offering {
		return []catalog.Offering{
			{ID: "1", Name: "first", Plans: []catalog.Plan{{ID: "1a", Name: "a"}, {ID: "1b", Name: "b"}}},
			{ID: "2", Name: "second", Plans: []catalog.Plan{{ID: "2a", Name: "a"}}},
			{ID: "3", Name: "third", Plans: []catalog.Plan{{ID: "3a", Name: "a"}, {ID: "3b", Name: "b"}}},
		}
	}
	return s
}

func as(t *testing.T, s *osb.Server, user, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := request(method, target, body)
	r.SetBasicAuth(user, "p:w")
	w := send(t, s, method, target, body, "Authorization", r.Header.Get("Authorization"))
	bodyOf(t, w) // ERR-01
	return w
}

// Each platform is served at its own path, and nowhere else.
func TestPathsOfPlatforms(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "p", Instance: "i"})
	b := &stub{result: broker.Result{Effect: broker.Accepted, Token: token}}
	s := severalPlatforms(t, b)
	at := "/operations/" + token.String()
	for name, tc := range map[string]struct {
		reason, user, path string
		status             int
		location           string
	}{
		"Root":      {"no path of its own", "root", "/v2/service_instances/i", 202, at},
		"Own":       {"its own path", "eu", "/cf-eu/v2/service_instances/i", 202, "/cf-eu" + at},
		"Without":   {"not at the root", "eu", "/v2/service_instances/i", 404, ""},
		"Anothers":  {"not at another's path", "root", "/cf-eu/v2/service_instances/i", 404, ""},
		"Unknown":   {"nor at nobody's", "eu", "/other/v2/service_instances/i", 404, ""},
		"Deeper":    {"nor below it", "eu", "/cf-eu/cf-eu/v2/service_instances/i", 404, ""},
		"Stranger":  {"who is not known learns nothing", "stranger", "/cf-eu/v2/service_instances/i", 401, ""},
		"Encoded":   {"INP-11: what is encoded stays so", "eu", "/cf-eu/v2/service_instances/a%2Fb", 202, "/cf-eu" + at},
		"NoPrefix":  {"an instance may be called so", "root", "/v2/service_instances/v2", 202, at},
		"BadPrefix": {"not every text can be a path", "root", "/CF%20EU/v2/service_instances/i", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.asked = nil
			w := as(t, s, tc.user, "PUT", tc.path+"?accepts_incomplete=true",
				`{"service_id":"1","plan_id":"1a","organization_guid":"o","space_guid":"s"}`)
			expect.Same(t, tc.reason+": status", tc.status, w.Code)
			expect.Same(t, tc.reason+": Location", tc.location, w.Header().Get("Location"))
			q, asked := b.asked.(broker.ProvisionRequest)
			expect.Same(t, tc.reason+": the broker was asked", tc.status == 202, asked)
			if want := map[string]string{"root": "p-root", "eu": "p-eu"}[tc.user]; asked && q.Platform != want {
				t.Errorf("%s: for platform %q, want %q", tc.reason, q.Platform, want)
			}
		})
	}
	// The status resource is there too.
	b.poll = broker.Poll{Token: token, Operation: lifecycle.Operation{Kind: lifecycle.Provision, Phase: lifecycle.Succeeded,
		Settled: epoch}}
	w := as(t, s, "eu", "GET", "/cf-eu"+at, "")
	expect.Same(t, "FAC-06: status", 302, w.Code)
	expect.Same(t, "FAC-06: Location", "/cf-eu/v2/service_instances/i", w.Header().Get("Location"))
	r := httptest.NewRequest("GET", "/v2/catalog", nil) // it has no version, which is refused before the path
	r.SetBasicAuth("eu", "p:w")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	expect.Same(t, "a wrong path without a version is answered", 412, w.Code)
}

func TestPlatformsSeeTheirPartOfTheCatalog(t *testing.T) {
	b := &stub{}
	s := severalPlatforms(t, b)
	etags := map[string]bool{}
	for user, want := range map[string]string{
		"root": "first/a first/b second/a third/a third/b", "narrow": "first/a third/a third/b", "blind": "",
	} {
		w := as(t, s, user, "GET", "/v2/catalog", "")
		var body struct {
			Services []struct {
				Name  string
				Plans []struct{ Name string }
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Services == nil {
			t.Fatalf("CAT-01: %s: %s", user, w.Body)
		}
		var got []string
		for _, o := range body.Services {
			for _, p := range o.Plans {
				got = append(got, o.Name+"/"+p.Name)
			}
		}
		expect.Same(t, user+" sees", want, strings.Join(got, " "))
		etags[w.Header().Get("Etag")] = true
	}
	expect.Same(t, "CAT-30: etags of three catalogs", 3, len(etags))
	// The broker is told as well.
	as(t, s, "narrow", "PUT", "/v2/service_instances/i",
		`{"service_id":"2","plan_id":"2a","organization_guid":"o","space_guid":"s"}`)
	q := b.asked.(broker.ProvisionRequest)
	if q.View.Shows("2") || !q.View.Shows("1") || !q.View.Shows("1a") || q.View.Shows("1b") {
		t.Error("the broker was told another view")
	}
}
