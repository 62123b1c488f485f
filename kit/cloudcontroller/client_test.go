package cloudcontroller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/cloudcontroller"
)

// A script is a broker that answers by list, the last answer again and again, on a clock that only sleeping moves.
type script struct {
	mu      sync.Mutex
	answers []string // "STATUS BODY", with "Retry-After=N " before the body; "-" for none
	asked   []*http.Request
	bodies  []string
	at      []time.Duration // since the beginning
	clock   time.Duration
}

func answering(answers ...string) *script { return &script{answers: answers} }

// Answers to a poll.
const (
	going = `200 {"state":"in progress"}`
	done  = `200 {"state":"succeeded"}`
	fails = `200 {"state":"failed"}`
)

func (s *script) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := ""
	if r.Body != nil {
		raw, _ := io.ReadAll(r.Body)
		body = string(raw)
	}
	s.asked, s.bodies, s.at = append(s.asked, r), append(s.bodies, body), append(s.at, s.clock)
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	switch next {
	case "-":
		return nil, context.DeadlineExceeded
	case "cut":
		response := said(http.StatusCreated, "")
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return response, nil
	case "refused":
		return nil, &net.OpError{Op: "dial", Err: errNetwork}
	}
	status, text, _ := strings.Cut(next, " ")
	code := 0
	_, _ = fmt.Sscan(status, &code)
	if later, ok := strings.CutPrefix(text, "Retry-After="); ok {
		after, body, _ := strings.Cut(later, " ")
		response := said(code, body)
		response.Header.Set("Retry-After", after)
		return response, nil
	}
	return said(code, text), nil
}

func (s *script) sleep(_ context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock += d
	return nil
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// client is one as the changes make it.
func (s *script) client(changes ...func(*cloudcontroller.Client)) *cloudcontroller.Client {
	n := 0
	c := &cloudcontroller.Client{
		URL: "http://b", Credential: cloudcontroller.Credential{Username: "u", Password: "the-password"}, HTTP: s,
		Sleep: s.sleep, UserID: "me", Now: func() time.Time { return start.Add(s.clock) },
		NewID: func() string { n++; return fmt.Sprint("request-", n) },
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func same(*cloudcontroller.Client) {}

// requests are the methods and paths that were asked.
func (s *script) requests() (out []string) {
	for _, r := range s.asked {
		out = append(out, r.Method+" "+r.URL.Path[len("/v2/service_instances/"):])
	}
	return out
}

func provision(c *cloudcontroller.Client) error {
	return c.Provision(context.Background(),
		cloudcontroller.ProvisionRequest{ID: "i", ServiceID: "s", PlanID: "p", OrganizationGUID: "o", SpaceGUID: "s"})
}

// ready is a client with an instance.
func (s *script) ready(t *testing.T, changes ...func(*cloudcontroller.Client)) *cloudcontroller.Client {
	t.Helper()
	c := s.client(changes...)
	rest := s.answers
	s.answers = []string{"201 {}"}
	expect.OK(t, provision(c))
	s.answers, s.asked, s.bodies, s.at = rest, nil, nil, nil
	return c
}

// polls counts the polls that were asked.
func (s *script) polls() (n int) {
	for _, r := range s.asked {
		if strings.HasSuffix(r.URL.Path, "/last_operation") {
			n++
		}
	}
	return n
}

var asks = map[string]func(c *cloudcontroller.Client) error{
	"provision": provision,
	"update": func(c *cloudcontroller.Client) error {
		return c.Update(context.Background(), cloudcontroller.UpdateRequest{ID: "i", PlanID: "other"})
	},
	"bind": func(c *cloudcontroller.Client) error {
		_, err := c.Bind(context.Background(), cloudcontroller.BindRequest{InstanceID: "i", ID: "b", AppGUID: "a"})
		return err
	},
	"deprovision": func(c *cloudcontroller.Client) error { return c.Deprovision(context.Background(), "i") },
}

// The orphan table, row by row (ORP-01, ORP-06, SIM-13, SIM-16): which answers make the platform delete what may have been made.
func TestOrphanTable(t *testing.T) {
	const no, yes = "", "DELETE"
	for name, tc := range map[string]struct {
		reason, answer                       string
		minor                                int
		provision, update, bind, deprovision string // what follows on each: nothing, a deletion, or success
	}{
		"1": {"200 is success", "200 {}", 17, "ok", "ok", "ok", "ok"},
		"2": {"a malformed 200 is a failure, and nothing was made now", "200 {", 17, no, no, no, no},
		"2a": {"so is one whose members are of the wrong type", `200 {"dashboard_url":1,"credentials":[],"operation":false}`, 17,
			no, no, no, no},
		"3": {"201 is success for what makes something", "201 {}", 17, "ok", no, "ok", yes},
		"4": {"a malformed 201 may have made something", "201 []", 17, yes, no, yes, yes},
		"6": {"a malformed 202 may have begun something", "202 null", 17, yes, no, yes, no},
		"6a": {"and one with a token that is too long", `202 {"operation":"` + strings.Repeat("x", 10001) + `"}`, 17,
			yes, no, yes, no},
		"8":   {"another 2xx says that something was done", "204 ", 17, yes, no, yes, yes},
		"8a":  {"before 2.15 that meant nothing for deletions", "204 ", 14, yes, no, yes, no},
		"10":  {"408 from 2.14 on is the client's own fault", "408 {}", 14, no, no, no, no},
		"10a": {"and before, the broker's", "408 {}", 13, yes, no, yes, no},
		"11":  {"the broker has refused", "400 {}", 17, no, no, no, no},
		"11a": {"the broker has refused", "409 {}", 17, no, no, no, no},
		"11b": {"ORP-06, SIM-21: the broker is busy, and the user may ask again", `422 {"error":"ConcurrencyError"}`, 17,
			no, no, no, no},
		"11c": {"SIM-10: the broker wants permission", `422 {"error":"AsyncRequired"}`, 17, no, no, no, no},
		"11d": {"gone is what a deletion wants", "410 {}", 17, no, no, no, "ok"},
		"12":  {"the broker may have done anything", "500 {}", 17, yes, no, yes, yes},
		"12a": {"and so may what stands before it have seen", "504 <html>", 13, yes, no, yes, no},
		"14":  {"no answer within 60 s", "-", 17, yes, no, yes, no},
		"14b": {"an answer that breaks off is none", "cut", 17, yes, no, yes, no},
		"14a": {"no connection: nobody has seen the request", "refused", 17, no, no, no, no},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, want := range map[string]string{
				"provision": tc.provision, "update": tc.update, "bind": tc.bind, "deprovision": tc.deprovision,
			} {
				s := answering(tc.answer, "200 {}")
				c := s.client()
				if kind != "provision" {
					c = s.ready(t)
				}
				c.APIVersion = tc.minor
				err, got := asks[kind](c), no
				var failure *cloudcontroller.Failure
				switch {
				case err == nil:
					got = "ok"
				case !errors.As(err, &failure) || failure.Then == "":
					t.Errorf("%s: %s: failed as %#v", tc.reason, kind, err)
				case len(s.asked) > 1:
					got = s.asked[len(s.asked)-1].Method
				}
				if got != want {
					t.Errorf("%s: %s: got %q, want %q: %v %v", tc.reason, kind, got, want, err, s.requests())
				}
			}
		})
	}
}

// A bind that is answered later by a broker of a version that does not know of that (row 7), and one without permission.
func TestUnexpected202(t *testing.T) {
	for name, change := range map[string]func(*cloudcontroller.Client){
		"Old":         func(c *cloudcontroller.Client) { c.APIVersion = 13 },
		"Synchronous": func(c *cloudcontroller.Client) { c.Synchronous = true },
	} {
		s := answering("202 {}", "200 {}")
		if err := asks["bind"](s.ready(t, change)); err == nil || len(s.asked) != 2 || s.asked[1].Method != "DELETE" {
			t.Errorf("%s: %v %v", name, err, s.requests())
		}
	}
}

// An orphan is deleted at once, then after 2, 4, 8 … minutes, for 34 hours (ORP-02, ORP-03, ORP-04, ORP-05, ORP-07, SIM-19).
func TestMitigationSchedule(t *testing.T) {
	s := answering("500 {}")
	c := s.client()
	err := provision(c)
	var minutes []int
	for n, r := range s.asked[1:] {
		minutes = append(minutes, int(s.at[n+1]/time.Minute))
		if r.Method != "DELETE" || r.URL.RawQuery != "accepts_incomplete=true&plan_id=p&service_id=s" ||
			r.Header.Get("X-Broker-API-Originating-Identity") != "" {
			t.Errorf("request %d: %s %s as %q", n, r.Method, r.URL, r.Header.Get("X-Broker-API-Originating-Identity"))
		}
	}
	expect.Same(t, "minutes of the tries", []int{0, 2, 6, 14, 30, 62, 126, 254, 510, 1022, 2046}, minutes)
	if left := c.Instances(); len(left) != 1 || left[0].State != cloudcontroller.GivenUp {
		t.Errorf("the operator does not see it: %v %v", left, err)
	}
	for _, enough := range []string{"200 {}", "410 ", "202 {}"} {
		s := answering("-", "422 {}", "-", enough)
		c := s.client()
		if err := provision(c); err == nil || len(s.asked) != 4 || len(c.Instances()) != 0 {
			t.Errorf("%s: %v %v", enough, s.requests(), c.Instances())
		}
	}
}

// Each answer to a poll has its meaning (POLL-06, POLL-07, POLL-08): most of them say nothing, so that it is asked again.
func TestPolls(t *testing.T) {
	type end struct {
		create, deletion int // how many polls until the end
		created, removed bool
	}
	again := end{2, 2, true, true}
	for answer, want := range map[string]end{
		done: {1, 1, true, true}, `200 {"state":"failed","description":"no"}`: {1, 1, false, false}, "410 {}": {2, 1, true, true},
		going: again, `200 {"state":"in_progress"}`: again, "200 {}": again, "200 x": again, "400 {}": again, "401 {}": again,
		"404 {}": again, "500 {}": again, "-": again, "201 " + done[4:]: again, "202 " + done[4:]: again, "302 ": again,
	} {
		t.Run(answer, func(t *testing.T) {
			s := answering("202 {}", answer, done)
			if err := provision(s.client()); (err == nil) != want.created || s.polls() != want.create {
				t.Errorf("provision: %v %v", err, s.requests())
			}
			s = answering("202 {}", answer, done)
			c := s.ready(t)
			if err := c.Deprovision(t.Context(), "i"); (err == nil) != want.removed || s.polls() != want.deletion ||
				(len(c.Instances()) == 0) != want.removed {
				t.Errorf("deprovision: %v %v", err, s.requests())
			}
		})
	}
}

// When it is polled (POLL-03, POLL-11, POLL-12), and with what (POLL-02).
func TestPollIntervals(t *testing.T) {
	later := func(after string) []string {
		return []string{"202 {}", "200 Retry-After=" + after + " " + going[4:], done}
	}
	for name, tc := range map[string]struct {
		reason  string
		answers []string
		change  func(*cloudcontroller.Client)
		want    []int // seconds of each poll
	}{
		"Default": {"each minute, the first at once", []string{"202 {}", going, going, done}, same, []int{0, 60, 120}},
		"Clamped": {"not more often than the platform wants", later("5"), same, []int{0, 60}},
		"Asked":   {"as the broker says", later("300"), same, []int{0, 300}},
		"Day":     {"not less often than each day", later("999999999"), same, []int{0, 86400}},
		"Date":    {"a date is as nothing", later("Tue,01Jan2030"), same, []int{0, 60}},
		"AfterAPause": {"the first after what the 202 says", []string{"202 Retry-After=90 {}", done},
			func(c *cloudcontroller.Client) { c.PollAfterPause = true }, []int{90}},
		"Backoff": {"less and less often", []string{"202 {}", going, going, going, done},
			func(c *cloudcontroller.Client) { c.Backoff = 2 }, []int{0, 60, 180, 420}},
	} {
		t.Run(name, func(t *testing.T) {
			s := answering(tc.answers...)
			expect.OK(t, provision(s.client(tc.change)))
			var got []int
			for _, at := range s.at[1:] {
				got = append(got, int(at/time.Second))
			}
			expect.Same(t, tc.reason, tc.want, got)
		})
	}
	s := answering(`202 {"operation":"a b&c"}`, going, done)
	expect.OK(t, asks["update"](s.ready(t)))
	expect.Same(t, "an update is polled with", "operation=a+b%26c&plan_id=p&service_id=s", s.asked[2].URL.RawQuery)
}

// When polling ends without an end (POLL-04, POLL-05, POLL-06).
func TestPollLimits(t *testing.T) {
	catalog := `200 {"services":[{"id":"s","name":"s","description":"d","bindable":true,"plans":[
		{"id":"p","name":"p","description":"d","maximum_polling_duration":600}]}]}`
	for name, tc := range map[string]struct {
		reason string
		change func(*cloudcontroller.Client)
		known  bool
		polls  int
	}{
		"Week":     {"10080 minutes", same, false, 10081},
		"Plan":     {"the plan knows that it is quicker", same, true, 11},
		"Platform": {"the platform's own limit", func(c *cloudcontroller.Client) { c.PollLimit = 5 * time.Minute }, true, 6},
		"Attempts": {"25 times, as once", func(c *cloudcontroller.Client) { c.PollAttempts = 25 }, false, 25},
	} {
		t.Run(name, func(t *testing.T) {
			s := answering("202 {}", going)
			c := s.client(tc.change)
			if tc.known {
				s.answers = append([]string{catalog}, s.answers...)
				expect.Get(c.Catalog(t.Context()))(t)
				s.asked = nil
			}
			c.KeepOrphans = true
			expect.Says(t, tc.reason, fmt.Sprint(provision(c)), "failed to provision within the required time")
			expect.Same(t, tc.reason+": polls", tc.polls, len(s.asked)-1)
		})
	}
}
