package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/servicestest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// An account is where services are made.
type account struct {
	direct   aws.Config // as somebody who may do all, without TLS
	endpoint string     // of a gateway to it, over TLS to policies
	kept     *sync.Map  // credentials of what stays
}

func newAccount(t *testing.T) account {
	t.Helper()
	direct := emulator.Enforcing(t)
	gateway := httptest.NewServer(expect.Get(testserver.OverTLS(*direct.BaseEndpoint))(t))
	t.Cleanup(gateway.Close)
	return account{direct, gateway.URL, &sync.Map{}}
}

// as is the config of whoever has credentials, and root of somebody who may do all, over TLS.
func (a account) as(got map[string]string) aws.Config { return servicestest.Config(a.endpoint, got) }
func (a account) root() aws.Config                    { return a.as(keyOf("test")) }

func keyOf(name string) map[string]string {
	return map[string]string{"region": "us-east-1", "access_key_id": name, "secret_access_key": name}
}

// lists names what there is, except for what stays.
func (a account) lists(t *testing.T) []string {
	t.Helper()
	all := expect.Get(servicestest.Listing(t.Context(), a.direct, ""))(t)
	return slices.DeleteFunc(all, func(line string) (stayed bool) {
		kind, name, _ := strings.Cut(line, " ")
		a.kept.Range(func(of, _ any) bool {
			stayed = stayed || slices.Contains([]string{"bucket", "table", "secret"}, kind) && strings.Contains(of.(string), name)
			return !stayed
		})
		return stayed
	})
}

// awsRuns are the commands of a broker with AWS services: an account is prepared for its data folder, and then it serves.
func awsRuns(t *testing.T, endpoint, own string) *process {
	t.Helper()
	data := t.TempDir()
	env := credentials("AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+filepath.Join(data, "none"),
		"AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(data, "none"))
	flags := []string{"--data", data}
	if own != "" {
		flags = append(flags, "--offerings", own)
	}
	does(t, env, append([]string{"aws", "bootstrap", "--emulated"}, flags...)...)
	return startWith(t, env, append([]string{"--aws"}, flags...)...)
}

// A rented is an instance of a plan, at one broker.
type rented struct {
	p             *process
	t             *testing.T
	service, plan string
	path          string
}

// named is one that is not yet ordered, of an offering and a plan by their names.
func named(t *testing.T, p *process, offering, plan, id string) rented {
	t.Helper()
	known := catalogIDs(t, p.url)
	r := rented{p, t, known[offering], known[offering+"/"+plan], instancePath(id)}
	if r.plan == "" {
		t.Fatalf("plan %s of %s is not offered", plan, offering)
	}
	return r
}

// order begins to make one.
func order(t *testing.T, p *process, offering, plan, id, more string) rented {
	t.Helper()
	return orderIn(t, p, offering, plan, id, place+more)
}

// orderIn begins to make one in a place.
func orderIn(t *testing.T, p *process, offering, plan, id, place string) rented {
	t.Helper()
	r := named(t, p, offering, plan, id)
	r.begins("PUT", r.path, ","+place)
	return r
}

// do makes a request, whose operation succeeds.
func (r rented) do(method, path, more string) {
	r.t.Helper()
	r.begins(method, path, more)
	r.succeeds(path)
}

// begins makes a request, whose operation goes on.
func (r rented) begins(method, path, more string) {
	r.t.Helper()
	body := planBody(r.service, r.plan, more)
	if method == "DELETE" {
		body = ""
	}
	must(r.t, r.p.url, method, path+async+"&"+idsOf(r.service, r.plan), body, 200, 201, 202)
}

// ends waits for the end of an operation.
func (r rented) ends(path string) (last answer) {
	r.t.Helper()
	waitFor(r.t, time.Minute, "the end of what goes on at "+path, func() bool {
		last = expect.Get(send(r.p.url, "GET", path+"/last_operation", ""))(r.t)
		return last.text("state") != "in progress"
	})
	return last
}

func (r rented) succeeds(path string) {
	r.t.Helper()
	if last := r.ends(path); last.text("state") == "failed" {
		r.t.Fatalf("what was asked of %s has not succeeded: %s", path, last.raw)
	}
}

// bindAll gives the credentials of a binding of each instance, which are made at once.
func bindAll(all ...rented) (credentials []map[string]string) {
	for _, r := range all {
		r.t.Helper()
		r.succeeds(r.path)
		r.begins("PUT", r.binding(), "")
	}
	for _, r := range all {
		r.succeeds(r.binding())
		got, _ := must(r.t, r.p.url, "GET", r.binding(), "", 200).body["credentials"].(map[string]any)
		out := make(map[string]string, len(got))
		for name, value := range got {
			out[name] = fmt.Sprint(value)
		}
		credentials = append(credentials, out)
	}
	return credentials
}

func (r rented) binding() string { return r.path + "/service_bindings/b-" + path.Base(r.path) }
func (r rented) unbind()         { r.t.Helper(); r.do("DELETE", r.binding(), "") }

// deprovisioned deletes instances at once.
func deprovisioned(all ...rented) {
	for _, r := range all {
		r.t.Helper()
		r.begins("DELETE", r.path, "")
	}
	for _, r := range all {
		r.succeeds(r.path)
	}
}

// Each plan of the eight services, of the one of an operator's own that docs/cloudformation.md explains, and of the one that
// the program writes, on an AWS that does what policies say, by one broker at once: what is handed out opens its own and
// nothing else, opens nothing after the unbind, and nothing is left but what a plan retains.
func TestServices(t *testing.T) {
	a := newAccount(t)
	dir := t.TempDir()
	expect.OK(t, os.CopyFS(dir, os.DirFS("../../../docs/examples")))
	does(t, nil, "catalog", "new", "--cloudformation", servicestest.Written().Offering, dir)
	p := awsRuns(t, a.endpoint, dir)
	before := a.lists(t)
	var all sync.WaitGroup // t.Parallel would wait for processors, and these wait for clocks
	for _, s := range append(servicestest.Services(), servicestest.Own(), servicestest.Written()) {
		for _, plan := range s.Plans {
			all.Go(func() {
				t.Run(s.Offering+" "+plan.Name, func(t *testing.T) { life{t, p, a, s, plan}.lives() })
			})
		}
		if s.Moves {
			all.Go(func() {
				t.Run(s.Offering+" moves", func(t *testing.T) { life{t, p, a, s, s.Plans[0]}.moves(s.Plans[1]) })
			})
		}
	}
	all.Wait()
	expect.Same(t, "the account", before, a.lists(t))
}

// A life is that of two instances of a plan.
type life struct {
	*testing.T
	broker  *process
	account account
	service servicestest.Service
	plan    servicestest.Plan
}

// lives orders one instance without parameters, which is updated, and another with all that there are.
func (l life) lives() {
	l.Helper()
	t, id := l.T, l.service.Offering+"-"+l.plan.Name
	mine := order(t, l.broker, l.service.Offering, l.plan.Name, id+"-1", "")
	other := order(t, l.broker, l.service.Offering, l.plan.Name, id+"-2", `,"parameters":`+l.plan.Given)
	both := bindAll(mine, other)
	got, others := both[0], both[1]
	expect.Fails(t, "the credentials are complete", nil, l.service.Complete(l.plan, got))
	l.has(others, l.plan.Given, l.plan.Unseen...)
	l.has(got, l.plan.Changed, "*") // an update to them can be seen
	mine.do("PATCH", mine.path, `,"parameters":`+l.plan.Changed)
	l.has(got, l.plan.Changed, slices.Concat(l.plan.Unseen, l.plan.Unchanged)...)
	for _, with := range both {
		expect.OK(t, l.use(l.account.endpoint, with), "the credentials are of no use")
	}
	l.isRefused(got, others)
	open := l.account.as(got)
	expect.Fails(t, "before the unbind, it is tried whether "+l.plan.Shows, nil, l.plan.Use(t.Context(), open, got))
	mine.unbind()
	for what, use := range map[string]func() error{"the key": func() error { return l.use(l.account.endpoint, got) },
		"a session that goes on": func() error { return l.plan.Use(t.Context(), open, got) }} {
		// AWS needs seconds.
		waitFor(t, 10*time.Second, what+" to be refused after the unbind", func() bool { return servicestest.Refused(use()) })
	}
	expect.Fails(t, "the other's key after the unbind", nil, l.use(l.account.endpoint, others))
	l.ends(mine, other, got, others)
	for _, with := range both {
		if secret := with["secret_access_key"]; secret != "" {
			expect.Never(t, "what the broker tells", l.broker.out.String()+l.broker.log.String(), secret)
		}
	}
}

func (l life) use(at string, with map[string]string) error {
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	return l.plan.Use(ctx, servicestest.Config(at, with), with)
}

// has compares what an account shows of an instance to its parameters. The emulator does not show those that are named as
// unseen; a star names all.
func (l life) has(got map[string]string, parameters string, unseen ...string) {
	l.Helper()
	var want map[string]any
	expect.OK(l, json.Unmarshal([]byte(parameters), &want))
	seen := expect.Get(l.service.See(l.Context(), l.account.root(), got))(l)
	for name, value := range want {
		hidden := slices.Contains(unseen, name) || slices.Contains(unseen, "*")
		if (fmt.Sprint(seen[name]) == fmt.Sprint(value)) == hidden {
			l.Errorf("%s of %s: the account has %v, and is said not to show %v", name, parameters, seen[name], unseen)
		}
	}
}

// refused requires that an error is a refusal for want of rights.
func (l life) refused(what string, err error) {
	l.Helper()
	if !servicestest.Refused(err) {
		l.Errorf("%s: want refused, got %v", what, err)
	}
}

// isRefused has one binding try what it may not do.
func (l life) isRefused(got, others map[string]string) {
	l.Helper()
	l.refused("a key on the other's resource", l.use(l.account.endpoint, l.plan.With(others, got)))
	if l.service.OnlyTLS {
		l.refused("a call without TLS", l.use(*l.account.direct.BaseEndpoint, got))
	}
	l.isForbidden(got)
	if l.plan.Role {
		stranger := servicestest.Assumed(l.account.as(keyOf("444455556666")), got)
		l.refused("an account that the plan does not name", l.plan.Use(l.Context(), stranger, got))
		for _, id := range []string{"", others["external_id"]} {
			without := maps.Clone(got)
			without["external_id"] = id
			l.refused("a role without its external id", l.use(l.account.endpoint, without))
		}
	}
}

// isForbidden has a binding try what no binding of the plan may do.
func (l life) isForbidden(got map[string]string) {
	l.Helper()
	if l.plan.Forbidden != nil {
		l.refused(l.plan.Forbids, l.plan.Forbidden(l.Context(), l.account.as(got), got))
	}
}

// moves has an instance that is bound get another plan, by which the binding may do what
// that plan's may, and the instance ends as that plan has it.
func (l life) moves(to servicestest.Plan) {
	l.Helper()
	r := order(l.T, l.broker, l.service.Offering, l.plan.Name, l.service.Offering+"-moves", "")
	got := bindAll(r)[0]
	r.plan = named(l.T, l.broker, l.service.Offering, to.Name, "").plan
	r.do("PATCH", r.path, "")
	l.plan = to
	expect.Fails(l, "the credentials after the move", nil, l.use(l.account.endpoint, got))
	l.isForbidden(got)
	r.unbind()
	deprovisioned(r)
	l.stays(got)
}

// ends deletes both instances, of which one is bound, as the plan has it.
func (l life) ends(mine, other rented, got, others map[string]string) {
	l.Helper()
	if l.plan.OnDelete == plan.Refuse {
		remove := expect.Get(servicestest.DeadLetter(l.Context(), l.account.as(others), others))(l)
		other.unbind()
		other.begins("DELETE", other.path, "")
		if last := other.ends(other.path); last.text("state") != "failed" {
			l.Fatalf("what holds something is deleted: %s", last.raw)
		}
		expect.OK(l, remove(l.account.root())) // nothing can be bound by now
	} else {
		other.unbind()
	}
	deprovisioned(mine, other)
	l.stays(got)
	l.stays(others)
}

// stays notes what a plan retains, which is as it was.
func (l life) stays(got map[string]string) {
	l.Helper()
	if l.plan.OnDelete != plan.Retain {
		return
	}
	expect.Fails(l, "what was to stay", nil, l.plan.Use(l.Context(), l.account.root(), got))
	for _, name := range l.service.Credentials {
		l.account.kept.Store(got[name], true)
	}
}
