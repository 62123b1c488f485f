package cloudcontroller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/cloudcontroller"
)

const catalogOf = `200 {"services":[{"id":"s","name":"n","description":"d","bindable":true,"requires":%REQUIRES%,"plans":[
	{"id":"p","name":"p","description":"d","maintenance_info":{"version":"1.0.0"}},
	{"id":"other","name":"q","description":"d","plan_updateable":true}]}]}`

// known is a client with a catalog and an instance.
func (s *script) known(t *testing.T, requires string) *cloudcontroller.Client {
	t.Helper()
	return s.ready(t, func(c *cloudcontroller.Client) {
		rest := s.answers
		s.answers = []string{strings.ReplaceAll(catalogOf, "%REQUIRES%", requires)}
		expect.Get(c.Catalog(t.Context()))(t)
		s.answers = rest
	})
}

// The platform refuses some requests by itself, without asking the broker (SIM-05, SIM-06, SIM-07, SIM-11).
func TestRefusedByThePlatform(t *testing.T) {
	s := answering("200 {}")
	c := s.known(t, "[]")
	if err := asks["update"](c); !refused(err, "changing plans") || len(s.asked) != 0 {
		t.Errorf("SIM-11: %v %v", err, s.requests())
	}
	if err := provision(c); !refused(err, "in use") || len(s.asked) != 0 {
		t.Errorf("the id is in use: %v", err)
	}
	if err := c.Deprovision(t.Context(), "none"); !refused(err, "no such") || len(s.asked) != 0 {
		t.Errorf("SIM-05: %v", err)
	}
	s = answering("202 {}", going, done)
	c = s.client()
	busy := 0
	c.Sleep = func(ctx context.Context, d time.Duration) error {
		before := len(s.asked)
		for name, ask := range map[string]func(c *cloudcontroller.Client) error{"update": asks["update"], "bind": asks["bind"]} {
			if err := ask(c); !refused(err, "Another operation for this service instance is in progress.") ||
				len(s.asked) != before {
				t.Errorf("SIM-06: %s: %v", name, err)
			}
			busy++
		}
		return s.sleep(ctx, d)
	}
	if err := provision(c); err != nil || busy != 2 {
		t.Errorf("%v, %d", err, busy)
	}
}

func refused(err error, why string) bool {
	var r *cloudcontroller.Refused
	return errors.As(err, &r) && strings.Contains(r.Why, why)
}

// Requests carry all that Cloud Controller sends (SIM-15, SIM-19), and deletions come in its order (SIM-20).
func TestRequests(t *testing.T) {
	s := answering("200 {}")
	c := s.known(t, "[]")
	expect.OK(t, asks["bind"](c))
	expect.OK(t, c.Deprovision(t.Context(), "i"))
	expect.Same(t, "SIM-20", []string{"PUT i/service_bindings/b", "DELETE i/service_bindings/b", "DELETE i"}, s.requests())
	expect.Says(t, "SIM-15", s.bodies[0], `"app_guid":"a","bind_resource":{"app_guid":"a"}`)
	seen := map[string]bool{}
	for _, r := range s.asked {
		user, password, _ := r.BasicAuth()
		h := r.Header
		if user != "u" || password != "the-password" || h.Get("X-Broker-API-Version") != "2.17" ||
			seen[h.Get("X-Broker-API-Request-Identity")] ||
			h.Get("X-Broker-API-Originating-Identity") != "cloudfoundry eyJ1c2VyX2lkIjoibWUifQ==" ||
			(h.Get("Content-Type") == "application/json") != (r.Method == "PUT") {
			t.Errorf("SIM-19: %s %s: %v", r.Method, r.URL, h)
		}
		seen[h.Get("X-Broker-API-Request-Identity")] = true
	}
	key := answering("200 {}")
	if _, err := key.known(t, "[]").Bind(t.Context(), cloudcontroller.BindRequest{InstanceID: "i", ID: "b"}); err != nil ||
		strings.Contains(key.bodies[0], "app_guid") {
		t.Errorf("SIM-15: a key: %v %s", err, key.bodies[0])
	}
}

// A binding that gives a URL without the service's permission is an invalid answer (SIM-14).
func TestGrants(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, requires string
		ok               bool
	}{
		"Credentials":   {`{"credentials":{"a":1}}`, "[]", true},
		"NoCredentials": {`{}`, "[]", true},
		"BadCredential": {`{"credentials":"a"}`, "[]", false},
		"Syslog":        {`{"syslog_drain_url":"x"}`, `["syslog_drain"]`, true},
		"NoSyslog":      {`{"syslog_drain_url":"x"}`, "[]", false},
		"Route":         {`{"route_service_url":"x"}`, `["route_forwarding"]`, true},
		"NoRoute":       {`{"route_service_url":"x"}`, `["syslog_drain"]`, false},
		"Volume":        {`{"volume_mounts":[{}]}`, `["volume_mount"]`, true},
		"NoVolume":      {`{"volume_mounts":[{}]}`, "[]", false},
		"NoVolumeAtAll": {`{"volume_mounts":[]}`, "[]", true},
	} {
		for _, later := range []bool{false, true} {
			s := answering("201 "+tc.answer, "410 {}")
			if later {
				s.answers = []string{"202 {}", done, "200 " + tc.answer, "410 {}"}
			}
			c := s.known(t, tc.requires)
			if err := asks["bind"](c); (err == nil) != tc.ok || (len(c.Bindings()) == 1) != tc.ok ||
				(s.asked[len(s.asked)-1].Method == "DELETE") == tc.ok {
				t.Errorf("%s, later %v: %v %v", name, later, err, s.requests())
			}
		}
	}
}

// An asynchronous bind is ready once it has been fetched; one that cannot be is an orphan (POLL-01, POLL-10).
func TestBindingsAreFetched(t *testing.T) {
	for answer, fine := range map[string]bool{`200 {"credentials":{}}`: true, "404 {}": false, "200 x": false, "-": false} {
		s := answering("202 {}", done, answer, "200 {}")
		c := s.ready(t)
		err := asks["bind"](c)
		want := []string{"PUT i/service_bindings/b", "GET i/service_bindings/b/last_operation", "GET i/service_bindings/b"}
		if !fine {
			want = append(want, "DELETE i/service_bindings/b")
		}
		expect.Same(t, answer, want, s.requests())
		expect.Same(t, fmt.Sprint(answer, err, ": fine"), fine, err == nil)
	}
}

// The plan that the platform remembers is the one that an update has come to (POLL-09).
func TestPlanAfterUpdate(t *testing.T) {
	for answer, want := range map[string]string{done: "other", fails: "p"} {
		s := answering("202 {}", answer)
		c := s.ready(t)
		if _ = asks["update"](c); c.Instances()[0].PlanID != want || c.Instances()[0].State != cloudcontroller.Ready {
			t.Errorf("%s: %+v", answer, c.Instances())
		}
	}
}

// A platform that is set so leaves what failed to its user (ORP-08, ORP-09).
func TestKeeping(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *cloudcontroller.Client)
		state  cloudcontroller.State
	}{
		"Failed":  {func(c *cloudcontroller.Client) { c.KeepFailed = true }, cloudcontroller.CreateFailed},
		"Orphans": {func(c *cloudcontroller.Client) { c.KeepOrphans = true }, cloudcontroller.Orphaned},
	} {
		s := answering("202 {}", fails)
		c := s.client(tc.change)
		if err := provision(c); err == nil || len(s.asked) != 2 || c.Instances()[0].State != tc.state {
			t.Errorf("%s: %v %v %+v", name, err, s.requests(), c.Instances())
		}
		s.answers = []string{"200 {}"}
		if err := c.Deprovision(t.Context(), "i"); err != nil || len(c.Instances()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An operation that has not ended within its time is deleted all the same: it may go on.
	s := answering("202 {}", going, "200 {}")
	c := s.client(func(c *cloudcontroller.Client) { c.KeepFailed, c.PollAttempts = true, 1 })
	if err := provision(c); err == nil || len(s.asked) != 3 || len(c.Instances()) != 0 {
		t.Errorf("%v %v %+v", err, s.requests(), c.Instances())
	}
}

// A deletion overtakes the making of an instance: nobody asks any more how that ends, nor deletes it once more.
func TestDeletionOvertakesCreation(t *testing.T) {
	for name, then := range map[string]string{"Running": going, "Failed": fails} {
		s := answering("202 {}", going, "200 {}", then)
		c := s.client()
		c.Sleep = func(ctx context.Context, d time.Duration) error { return c.Deprovision(ctx, "i") }
		if err := provision(c); err == nil || len(c.Instances()) != 0 {
			t.Errorf("%s: %v %+v", name, err, c.Instances())
		}
		expect.Same(t, name, []string{"PUT i", "GET i/last_operation", "DELETE i"}, s.requests())
	}
}

// A request that was overtaken while it was sent is not an orphan: the deletion that overtook it is somebody's.
func TestDeletionOvertakesAPoll(t *testing.T) {
	s := answering("202 {}", fails, "410 {}")
	c := s.client()
	deleted := false
	c.HTTP = doer(func(r *http.Request) (*http.Response, error) {
		response, err := s.Do(r)
		if r.Method == http.MethodGet && !deleted {
			deleted = true
			if err := c.Deprovision(t.Context(), "i"); err != nil {
				t.Error(err)
			}
		}
		return response, err
	})
	if err := provision(c); err == nil || len(s.asked) != 3 || len(c.Instances()) != 0 {
		t.Errorf("%v %v %+v", err, s.requests(), c.Instances())
	}
}

// A platform that is ended waits for the answer that is under way, and what it was about to delete can be deleted later.
func TestInterruption(t *testing.T) {
	s := answering("202 {}", going, "200 {}")
	c := s.ready(t)
	ctx, interrupt := context.WithCancel(t.Context())
	c.HTTP = doer(func(r *http.Request) (*http.Response, error) {
		interrupt()
		if r.Context().Err() != nil {
			t.Error("a request is given up")
		}
		return s.Do(r)
	})
	c.Sleep = sleep
	if err := c.Deprovision(ctx, "i"); !errors.Is(err, context.Canceled) || len(c.Instances()) != 1 {
		t.Errorf("%v %+v", err, c.Instances())
	}
	if err := c.Deprovision(t.Context(), "i"); err != nil || len(c.Instances()) != 0 {
		t.Errorf("again: %v %+v", err, c.Instances())
	}
}

// A broker is registered only with a catalog that a platform can use (SIM-01).
func TestCatalogs(t *testing.T) {
	const plan, other = `{"id":"p","name":"p","description":"d"}`, `{"id":"q","name":"p","description":"d"}`
	service := func(id, name, plans string) string {
		return `{"id":"` + id + `","name":"` + name + `","description":"d","bindable":true,"plans":[` + plans + `]}`
	}
	offers := func(services string) string { return `200 {"services":[` + services + `]}` }
	for _, c := range []struct{ answer, problem string }{
		{offers(service("s", "n", plan)), ""}, {offers(""), ""}, {offers(service("s", "n", "")), "and a plan"},
		{offers(service("s", "", plan)), "a name"}, {offers(service("p", "n", plan)), "one id"},
		{offers(service("s", "n", `{"name":"p","description":"d"}`)), "needs an id"},
		{offers(service("s", "n", plan) + "," + service("t", "n", other)), "one name"},
		{offers(service("s", "n", plan+","+other)), "one name"}, {`200 {"services":{}}`, "wrong type"}, {"200 x", "not JSON"},
		{"401 {}", "refuses the credentials"}, {`500 {"description":"in pain"}`, "in pain"}, {"-", "does not answer"},
	} {
		_, err := answering(c.answer).client().Catalog(t.Context())
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.answer, err, c.problem)
		}
	}
}

// No transcript and no error tells a secret, wherever the broker says it.
func TestSecretsAreLeftOut(t *testing.T) {
	const secret = "s3cr3t-of-the-binding"
	s := answering(
		`201 {"credentials":{"uri":"x://u:`+secret+`@h","list":["`+secret+
			`"]},"syslog_drain_url":"x","parameters":{"a":"parameter-value"}}`,
		`500 {"description":"the-password is wrong for `+secret+`"}`, "500 "+secret, "410 {}",
		`500 {"description":"Authorization: Basic dTp0aGUtcGFzc3dvcmQ="}`, "410 {}",
	)
	c := s.known(t, `["syslog_drain"]`)
	var told strings.Builder
	c.Observe = func(e cloudcontroller.Exchange) {
		told.WriteString(e.Method + e.Path + e.Said + e.Decided + "\n")
	}
	_ = asks["bind"](c)
	if err := c.Unbind(t.Context(), "i", "b"); err == nil || strings.Contains(err.Error(), secret) {
		told.WriteString("error: " + err.Error())
	}
	_ = asks["bind"](c)
	expect.Says(t, "what is told", told.String(), "Basic (left out)")
	expect.Never(t, "what is told", told.String(), secret, "the-password", "dTp0aGUtcGFzc3dvcmQ=", "parameter-value")
	expect.Says(t, "what is told", told.String(), "(left out)")
	expect.Never(t, "the credential", c.Credential.String(), "the-password")
}

// The error tells what the broker said, or that it said nothing (SIM-18).
func TestErrorTexts(t *testing.T) {
	for answer, want := range map[string]string{
		`400 {"description":"no such size"}`: "provision failed: no such size",
		`400 {}`:                             "provision failed: The broker answered 400 and did not say why.",
		`422 {"error":"ConcurrencyError"}`:   "provision failed: The broker answered 422 and did not say why.",
	} {
		expect.Same(t, answer, want, fmt.Sprint(provision(answering(answer).client())))
	}
}

// A request waits for an answer for 60 s, and for no longer (SIM-17).
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering("410 {}")
		c := s.client()
		c.Now = now
		c.HTTP = doer(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				return s.Do(r)
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := now()
		if err := provision(c); err == nil || now().Sub(began) != time.Minute || len(s.asked) != 1 {
			t.Errorf("%v after %v, %v", err, now().Sub(began), s.requests())
		}
	})
}

type doer func(r *http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
