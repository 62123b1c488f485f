package e2e_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/emulator"
	"github.com/longshore/longshore/internal/servicestest"
	"github.com/longshore/longshore/internal/testserver"
)

// overTLS is the address of a gateway to an AWS, over TLS to policies.
func overTLS(t *testing.T, to string) string {
	t.Helper()
	handler, err := testserver.OverTLS(to)
	if err != nil {
		t.Fatal(err)
	}
	gateway := httptest.NewServer(handler)
	t.Cleanup(gateway.Close)
	return gateway.URL
}

// awsRuns are the commands of a broker with AWS services: an account is prepared for
// its data folder, and then it serves.
func awsRuns(t *testing.T, endpoint, own string) *process {
	t.Helper()
	data := t.TempDir()
	env := credentials("AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE="+filepath.Join(data, "none"), "AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(data, "none"))
	flags := []string{"--data", data}
	if own != "" {
		flags = append(flags, "--offerings", own)
	}
	bootstrap := command(env, append([]string{"aws", "bootstrap", "--emulated"}, flags...)...)
	if out, err := bootstrap.CombinedOutput(); err != nil {
		t.Fatalf("preparing the account: %v\n%s", err, out)
	}
	return startWith(t, env, append([]string{"--aws"}, flags...)...)
}

// A rented is an instance of a service, of the tests of one broker.
type rented struct {
	p             *process
	t             *testing.T
	service, plan string
	path          string
}

func rent(t *testing.T, p *process, offering, plan, id, more string) rented {
	t.Helper()
	r := rented{p: p, t: t, path: instancePath(id)}
	services, _ := must(t, p.url, "GET", "/v2/catalog", "", 200).body["services"].([]any)
	for _, s := range services {
		s, _ := s.(map[string]any)
		plans, _ := s["plans"].([]any)
		for _, one := range plans {
			if one, _ := one.(map[string]any); s["name"] == offering && one["name"] == plan {
				r.service, r.plan = fmt.Sprint(s["id"]), fmt.Sprint(one["id"])
			}
		}
	}
	if r.plan == "" {
		t.Fatalf("plan %s of %s is not offered:\n%s", plan, offering, p.log)
	}
	r.do("PUT", r.path, `,"organization_guid":"o","space_guid":"s"`+more)
	return r
}

// do makes a request, whose operation succeeds.
func (r rented) do(method, path, more string) {
	r.t.Helper()
	if last := r.ends(method, path, more); last.text("state") == "failed" {
		r.t.Fatalf("%s %s has not succeeded: %s\n%s", method, path, last.raw, r.p.log)
	}
}

// ends makes a request and waits for the end of its operation.
func (r rented) ends(method, path, more string) answer {
	r.t.Helper()
	query := "?accepts_incomplete=true"
	body := fmt.Sprintf(`{"service_id":%q,"plan_id":%q%s}`, r.service, r.plan, more)
	if method == "DELETE" {
		query, body = query+"&service_id="+r.service+"&plan_id="+r.plan, ""
	}
	must(r.t, r.p.url, method, path+query, body, 200, 201, 202)
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) { // eight ask at once
		last, err := send(r.p.url, "GET", path+"/last_operation", "")
		switch state := last.text("state"); {
		case err != nil, time.Since(begun) > 40*time.Second:
			r.t.Fatalf("%s %s has no end: %v %s\n%s", method, path, err, last.raw, r.p.log)
		case state != "in progress":
			return last
		}
	}
}

// bind gives the credentials of a new binding.
func (r rented) bind(id string) map[string]string {
	r.t.Helper()
	path := r.path + "/service_bindings/" + id
	r.do("PUT", path, "")
	got, _ := must(r.t, r.p.url, "GET", path, "", 200).body["credentials"].(map[string]any)
	out := make(map[string]string, len(got))
	for name, value := range got {
		out[name] = fmt.Sprint(value)
	}
	return out
}

func (r rented) unbind(id string) { r.t.Helper(); r.do("DELETE", r.path+"/service_bindings/"+id, "") }
func (r rented) deprovision()     { r.t.Helper(); r.do("DELETE", r.path, "") }

// comesToBeRefused waits until a use is refused for want of rights; AWS needs seconds.
func comesToBeRefused(t *testing.T, what string, use func() error) {
	t.Helper()
	var err error
	waitFor(t, 10*time.Second, what+" to be refused", func() bool {
		err = use()
		return servicestest.Refused(err)
	})
}

// The eight services and the one of an operator's own that docs/cloudformation.md
// explains, on an AWS that does what policies say, by one broker at once:
// what is handed out opens its own and nothing else, opens nothing after the unbind,
// and nothing is left but what a plan retains.
func TestServices(t *testing.T) {
	direct := emulator.Enforcing(t)
	endpoint := overTLS(t, *direct.BaseEndpoint)
	dir := t.TempDir()
	own, err := servicestest.Own("../../docs/cloudformation.md", dir)
	if err != nil {
		t.Fatal(err)
	}
	p := awsRuns(t, endpoint, dir)
	before := accountOf(t, direct)
	var kept sync.Map      // credentials of what stays
	var all sync.WaitGroup // t.Parallel would wait for processors, and these wait for clocks
	for _, s := range append(servicestest.Services(), own) {
		all.Go(func() { t.Run(s.Offering, func(t *testing.T) { lives(t, p, s, endpoint, direct) }) })
		if s.Retained != "" {
			all.Go(func() { t.Run(s.Offering+" "+s.Retained, func(t *testing.T) { stays(t, p, s, endpoint, &kept) }) })
		}
	}
	all.Go(func() { t.Run("sqs fifo", func(t *testing.T) { isRefused(t, p, endpoint) }) })
	all.Wait()
	after := slices.DeleteFunc(accountOf(t, direct), func(line string) (stayed bool) {
		kind, name, _ := strings.Cut(line, " ")
		kept.Range(func(of, _ any) bool {
			stayed = stayed || slices.Contains([]string{"bucket", "table", "secret"}, kind) && strings.Contains(of.(string), name)
			return !stayed
		})
		return stayed
	})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the account was -before, and is +now:\n%s", diff)
	}
}

func accountOf(t *testing.T, c aws.Config) []string {
	t.Helper()
	all, err := servicestest.Listing(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lives is the life of two instances of a service.
func lives(t *testing.T, p *process, s servicestest.Service, endpoint string, direct aws.Config) {
	t.Helper()
	mine, other := rent(t, p, s.Offering, s.Plan, s.Offering+"-1", ""), rent(t, p, s.Offering, s.Plan, s.Offering+"-2", "")
	got, others := mine.bind(s.Offering+"-1b"), other.bind(s.Offering+"-2b")
	if err := s.Complete(got); err != nil {
		t.Error(err)
	}
	use := func(at string, with map[string]string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return s.Use(ctx, servicestest.Config(at, with), with)
	}
	if s.Change != nil {
		changes(t, mine, *s.Change, asRoot(endpoint), got)
	}
	for _, with := range []map[string]string{got, others} {
		if err := use(endpoint, with); err != nil {
			t.Fatalf("the credentials are of no use: %v", err)
		}
	}
	if err := use(endpoint, servicestest.With(others, got)); !servicestest.Refused(err) {
		t.Errorf("a key on the other's resource: want refused, got %v", err)
	}
	if s.OnlyTLS {
		if err := use(*direct.BaseEndpoint, got); !servicestest.Refused(err) {
			t.Errorf("a call without TLS: want refused, got %v", err)
		}
	}
	mine.unbind(s.Offering + "-1b")
	comesToBeRefused(t, "the key after the unbind", func() error { return use(endpoint, got) })
	if err := use(endpoint, others); err != nil {
		t.Errorf("the other's key after the unbind: %v", err)
	}
	other.unbind(s.Offering + "-2b")
	mine.deprovision()
	other.deprovision()
	for _, secret := range []string{got["secret_access_key"], others["secret_access_key"]} {
		if strings.Contains(p.out.String()+p.log.String(), secret) {
			t.Error("the broker tells a key")
		}
	}
}

// asRoot is the config of somebody who may do all.
func asRoot(endpoint string) aws.Config {
	return servicestest.Config(endpoint, map[string]string{"region": "us-east-1", "access_key_id": "test", "secret_access_key": "test"})
}

// changes updates an instance, which the account shows.
func changes(t *testing.T, r rented, c servicestest.Change, root aws.Config, got map[string]string) {
	t.Helper()
	was, err := c.See(t.Context(), root, got)
	if err != nil || was == c.Want {
		t.Fatalf("before the update: %q %v", was, err)
	}
	r.do("PATCH", r.path, `,"parameters":`+c.Parameters)
	if is, err := c.See(t.Context(), root, got); err != nil || is != c.Want {
		t.Errorf("after the update to %s: %q, want %q: %v", c.Parameters, is, c.Want, err)
	}
}

// stays is the life of an instance whose plan retains what it holds, which is noted.
func stays(t *testing.T, p *process, s servicestest.Service, endpoint string, kept *sync.Map) {
	t.Helper()
	r := rent(t, p, s.Offering, s.Retained, s.Offering+"-3", "")
	got := r.bind(s.Offering + "-3b")
	if err := s.Use(t.Context(), servicestest.Config(endpoint, got), got); err != nil {
		t.Fatalf("the credentials are of no use: %v", err)
	}
	r.unbind(s.Offering + "-3b")
	r.deprovision()
	if s.Use(t.Context(), servicestest.Config(endpoint, got), got) == nil {
		t.Error("the key is of use after the unbind")
	}
	if err := s.Use(t.Context(), asRoot(endpoint), got); err != nil {
		t.Errorf("what was to stay is of no use: %v", err)
	}
	for _, name := range s.Credentials {
		kept.Store(got[name], true)
	}
}

// isRefused is the life of a queue whose dead letters keep it from being deleted.
func isRefused(t *testing.T, p *process, endpoint string) {
	t.Helper()
	r := rent(t, p, "sqs", "fifo", "sqs-3", `,"parameters":{"visibility_timeout":0,"max_receives":1}`)
	got := r.bind("sqs-3b")
	remove, err := servicestest.DeadLetter(t.Context(), servicestest.Config(endpoint, got), got)
	if err != nil {
		t.Fatal(err)
	}
	r.unbind("sqs-3b")
	if last := r.ends("DELETE", r.path, ""); last.text("state") != "failed" {
		t.Fatalf("a queue with dead letters is deleted: %s", last.raw)
	}
	if err := remove(asRoot(endpoint)); err != nil { // nothing can be bound by now
		t.Fatal(err)
	}
	r.deprovision()
}
