package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// A check of records starts the tests' program again.
func TestMain(m *testing.M) {
	bolt.BeChecker()
	os.Exit(m.Run())
}

// A bench is an embedded broker over a folder, which can be stopped and started.
type bench struct {
	*started
	dir     string
	service string
	plans   map[string]string
	asker   string // the originating identity of requests; empty for none
}

const secretText = "canary-9c1d"

func newBench(t *testing.T) *bench {
	b := &bench{started: &started{T: t}, dir: t.TempDir(), plans: map[string]string{}}
	b.start()
	var catalog struct {
		Services []struct {
			ID, Name string
			Plans    []struct{ ID, Name string }
		}
	}
	expect.OK(t, json.Unmarshal([]byte(b.send("GET", "/v2/catalog", "", 200)), &catalog))
	for _, s := range catalog.Services {
		if s.Name == "demo" {
			b.service = s.ID
			for _, p := range s.Plans {
				b.plans[p.Name] = p.ID
			}
		}
	}
	return b
}

func (b *bench) start() {
	b.Helper()
	settings := embedded.Settings{Data: b.dir, Username: checkUser, Password: checkPassword, Getenv: quickly}
	b.started = expect.Get(startAs(b.T, settings, testkit.Shipped()))(b)
}

func (b *bench) send(method, path, body string, want int) string {
	b.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth(checkUser, checkPassword)
	r.Header.Set("X-Broker-API-Version", "2.17")
	r.Header.Set("X-Broker-API-Request-Identity", "request-7")
	if b.asker != "" {
		r.Header.Set("X-Broker-API-Originating-Identity", b.asker)
	}
	w := httptest.NewRecorder()
	b.broker.Handler.ServeHTTP(w, r)
	if w.Code != want {
		b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.String()
}

func (b *bench) provision(id, plan string, delay int, want int) (operation string) {
	b.Helper()
	var answer struct{ Operation string }
	body := b.send("PUT", "/v2/service_instances/"+id+"?accepts_incomplete=true", fmt.Sprintf(
		`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s","parameters":{"delay_seconds":%d,"note":%q}}`,
		b.service, b.plans[plan], delay, secretText), want)
	expect.OK(b, json.Unmarshal([]byte(body), &answer))
	return answer.Operation
}

// bind sends the same PUT of a binding to an instance of the plan sync at each call.
func (b *bench) bind(instance, id string, want int) (answer string) {
	b.Helper()
	return b.send("PUT", "/v2/service_instances/"+instance+"/service_bindings/"+id, fmt.Sprintf(
		`{"service_id":%q,"plan_id":%q,"parameters":{"note":%q}}`, b.service, b.plans["sync"], secretText), want)
}

// remove deletes an instance, or a binding that is named by INSTANCE/service_bindings/ID.
func (b *bench) remove(path string, want int) {
	b.Helper()
	b.send("DELETE", fmt.Sprintf("/v2/service_instances/%s?service_id=%s&plan_id=%s&accepts_incomplete=true",
		path, b.service, b.plans["sync"]), "", want)
}

// polled is what the platform is told of an instance's operation.
func (b *bench) polled(instance, token string) string {
	b.Helper()
	return b.send("GET", "/v2/service_instances/"+instance+"/last_operation?operation="+token, "", 200)
}

// operate calls a command on the folder.
func (b *bench) operate(want int, args ...string) string {
	b.Helper()
	status, out, diagnostics := called(b.T, environment, append(args, "--data", b.dir)...)
	if status != want {
		b.Fatalf("longshore %s: exit status %d, want %d:\n%s%s", strings.Join(args, " "), status, want, out, diagnostics)
	}
	expect.Never(b, "what is printed", out+diagnostics, secretText)
	return out + diagnostics
}

func has(t *testing.T, text string, wants ...string) {
	t.Helper()
	expect.Says(t, "what is printed", text, wants...)
}

// An operator sees the same whether the broker runs or not.
func TestOperatorsSee(t *testing.T) {
	b := newBench(t)
	b.provision("ready-1", "sync", 0, 201)
	b.bind("ready-1", "bound-1", 201)
	token := b.provision("slow-1", "async", 3600, 202)
	b.provision("gone-1", "sync", 0, 201)
	b.remove("gone-1", 200)
	for _, running := range []bool{true, false} {
		if !running {
			b.stop()
		}
		list := b.operate(0, "instances")
		has(t, list, "INSTANCE", "slow-1    creating  demo      async", "ready-1   ready     demo      sync", "s ago\n")
		expect.Never(t, "the list", list, "gone-1")
		has(t, b.operate(0, "instances", "--state", "deleted"), "gone-1")
		has(t, b.operate(0, "instances", "--plan", "sync"), "ready-1")
		only := b.operate(0, "instances", "--state", "running")
		has(t, only, "slow-1")
		expect.Never(t, "what runs", only, "ready-1")
		has(t, b.operate(0, "instances", "slow"), "state", "creating", token, "request-7", "the broker looks at it again by")
		has(t, b.operate(0, "bindings", "-o", "wide"), "bound-1  ready  ready-1", "bind succeeded")
		has(t, b.operate(0, "operations", "--state", "running", "-o", "wide"), token)
		has(t, b.operate(0, "operations", token), "  kind              provision\n", "  phase             in progress\n")
		has(t, b.operate(0, "instances", "--platform", "default"), "ready-1")
		has(t, b.operate(1, "instances", "--platform", "nobody"), `there is no platform "nobody": the known ones are default`)
		has(t, b.operate(1, "instances", "nothing"), `called "nothing"`, "`longshore instances`")
		few := b.operate(0, "instances", "--limit", "1")
		has(t, few, "These are 1, and there are more")
		expect.Never(t, "one of two", few, "ready-1")
		has(t, b.operate(2, "instances", "--limit", "-1"), "--limit is negative")
		has(t, b.operate(2, "instances", "--limit", "x"), `--limit does not take "x": give a whole number`)
		has(t, b.operate(2, "instances", "--stack", "Longshore"), "give only one of them")
		has(t, b.operate(2, "platform", "list", "--stack", "Longshore"), "give only one of them")
		has(t, b.operate(1, "reconcile", "nope"), "no provider of this broker uses servers that can be restored")
		shown := b.operate(0, "instances", "ready-1")
		has(t, shown, "organization  o\n", "space         s\n", "provider      demo\n")
		name := regexp.MustCompile(`longshore-demo-\S+`).FindString(shown)
		has(t, b.operate(0, "whose", name), "instance      ready-1")
		has(t, b.operate(1, "whose", "lsdnobodys"), `nothing of this broker is called "lsdnobodys"`)
		var rows []map[string]any
		if err := json.Unmarshal([]byte(b.operate(0, "instances", "-o", "json")), &rows); err != nil || len(rows) != 2 ||
			rows[0]["platform_id"] != "default" {
			t.Errorf("%v %v", rows, err)
		}
	}
	// Where no broker runs, no page can be shown, whatever the providers' settings are: none is set up to say so.
	for _, line := range []string{"dashboard ready-1", "console"} {
		status, _, diagnostics := called(t, map[string]string{"LONGSHORE_POSTGRES_URL": "nonsense"},
			append(strings.Fields(line), "--data", b.dir)...)
		expect.Same(t, line+": exit status", 1, status)
		has(t, diagnostics, "no broker runs on this folder that could show a page: start it by `longshore serve`")
	}
}

// The list says once for all operations that they wait for a server.
func TestWhatIsWaitedForIsListed(t *testing.T) {
	const gone, full = `target "default": start it`, `target "big": give it more room`
	row := func(instance, trouble string) operator.Row {
		return operator.Row{Instance: instance,
			Operation: &operator.Operation{Kind: "bind", Phase: "in progress", Trouble: trouble}}
	}
	const some = "1 of these wait for " + full + "\n2 of these wait for " + gone + "\n"
	for said, rows := range map[string][]operator.Row{
		"":   {row("i-1", ""), row("i-2", ""), {Instance: "i-3"}},
		some: {row("i-1", gone), row("i-2", full), row("i-3", gone)},
	} {
		var out strings.Builder
		tellWaits(&out, view{}, rows)
		expect.Same(t, "what follows the table", said, out.String())
	}
}

func TestOperatorsAct(t *testing.T) {
	b := newBench(t)
	b.provision("soon-1", "async", 10, 202)
	has(t, b.operate(0, "instances", "--watch"), "provision of soon-1: in progress", "provision of soon-1: succeeded",
		"[####################] 100 %", "Nothing runs.")
	has(t, b.operate(2, "instances", "--watch", "-o", "json"), "leave out -o json")
	has(t, b.operate(2, "operations", "--watch", "--state", "failed"), "any --state but running")
	has(t, b.operate(2, "bindings", "--watch", "--newer", "-1h"), "not negative")
	b.provision("soon-2", "async", 10, 202)
	watched := strings.Fields("operations --watch --older 1h --state running -o wide")
	expect.Same(t, "what is followed of what began an hour ago", "Nothing runs.\n", b.operate(0, watched...))
	token := b.provision("slow-1", "async", 3600, 202)
	has(t, b.operate(0, "retry", token), "Started again, as attempt 2")
	has(t, b.operate(1, "settle", token, "--failed", "Ask for it again next week."), "say --yes")
	has(t, b.operate(0, "settle", token, "--failed", "Ask for it again next week.", "--yes"), "It has failed", "create failed",
		"is removed by the broker itself")
	has(t, b.polled("slow-1", token), `"failed"`, "Ask for it again next week.")
	has(t, b.operate(1, "settle", token, "--failed", "x", "--yes"), "has failed already")
	// Retry deletes a failed creation.
	has(t, b.operate(0, "recreate", token), "It is being created again", "  kind      provision\n")
	has(t, b.operate(1, "recreate", token), "was not deleted by its platform")
	again := b.provision("slow-1", "async", 3600, 202)
	has(t, b.operate(0, "settle", again, "--failed", "Not this week either.", "--yes"), "It has failed")
	has(t, b.operate(0, "retry", again), "Its remains are being removed", "deprovision")
	has(t, b.operate(1, "retry", again), "another operation has replaced this one")
	has(t, b.operate(1, "retry", "nonsense"), "`longshore operations -o wide` lists")

	// Where no broker runs, what retry starts waits for it.
	token = b.provision("slow-2", "async", 3600, 202)
	b.stop()
	has(t, b.operate(0, "retry", token), "goes on when the broker is started")
	has(t, b.operate(0, "settle", token, "--failed", "No.", "--yes"), "create failed")
	b.start()
	has(t, b.polled("slow-2", token), "No.")
}

// A server that is not reached, or that nothing leads to, is a failure in either format, and hides no other server's outcome.
func TestReconcileOfServersThatAreNotReached(t *testing.T) {
	b := newBench(t)
	b.stop()
	const nowhere = "://longshore:secret@127.0.0.1:1/longshore"
	for _, step := range []struct {
		name, scheme, server string
		says                 string // in the diagnostics
	}{
		{"LONGSHORE_POSTGRES_URL", "postgresql", "postgres", "not all servers were reached"},
		{"LONGSHORE_MARIADB_URL", "mariadb", "mariadb", "--postgres is not given"}, // it was in the first step
	} {
		for _, format := range []string{"table", "json"} {
			status, out, diagnostics := called(t, map[string]string{step.name: step.scheme + nowhere},
				"reconcile", "-o", format, "--data", b.dir)
			expect.Same(t, step.server+" in "+format+": exit status", 1, status)
			has(t, diagnostics, step.says)
			if format == "table" {
				has(t, out, step.server+"/default: not reached")
				continue
			}
			var all []operator.Reconciled
			if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Provider != step.server ||
				all[0].Unreached == "" {
				t.Errorf("%s: %v in:\n%s", step.server, err, out)
			}
		}
	}
	status, out, diagnostics := called(t, nil, "reconcile", "postgres", "-o", "json", "--data", b.dir)
	expect.Same(t, "what is printed if nothing leads to any server", "", out)
	expect.Same(t, "exit status", 1, status)
	has(t, diagnostics, "--postgres is not given")
}

// A rebuild that may have missed something says so, and not as one of the things that it cannot derive.
func TestRebuildWithoutRest(t *testing.T) {
	var out strings.Builder
	err := printRebuilt(&out, operator.Rebuilt{Restless: 10, Unknown: []string{"thing-1: no offering has its plan"}})
	has(t, fmt.Sprint(err), "during each of 10 listings", "run the command again")
	const end = "These could not be derived:\n  thing-1: no offering has its plan\n"
	expect.Same(t, "what is printed last", end, out.String()[max(0, out.Len()-len(end)):])
}

// Rebuild gives a folder new records in place of lost or damaged ones, keeps those that are
// whole, and the broker goes on. The demo's instances are nothing but records.
func TestRebuildOfLostRecords(t *testing.T) {
	for name, lose := range map[string]func(records string) error{
		"Missing": os.Remove,
		"Damaged": func(records string) error { return os.Truncate(records, 5000) },
		"OfAnother": func(records string) error {
			other := newBench(t)
			other.stop()
			raw, err := os.ReadFile(filepath.Join(other.dir, "longshore.db"))
			return errors.Join(err, os.WriteFile(records, raw, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.provision("ready-1", "sync", 0, 201)
			// While nothing is lost, nothing is given up, whether the broker runs or not.
			has(t, b.operate(1, "rebuild"), "restore a backup instead")
			has(t, b.operate(0, "rebuild", "--yes"), "0 instances and 0 bindings have a record again")
			b.stop()
			has(t, b.operate(0, "rebuild", "--yes"), "0 instances and 0 bindings have a record again")
			b.start()
			b.send("GET", "/v2/service_instances/ready-1", "", 200)
			b.stop()

			expect.OK(t, lose(filepath.Join(b.dir, "longshore.db")))
			has(t, b.operate(1, "instances"), "restore the folder from a backup", "longshore rebuild")
			has(t, b.operate(0, "rebuild", "--yes"), "0 instances and 0 bindings have a record again")
			left, err := filepath.Glob(filepath.Join(b.dir, "longshore.db.lost-*"))
			if err != nil || len(left) == 1 != (name != "Missing") {
				t.Errorf("set aside: %v %v", left, err)
			}
			b.start()
			b.send("GET", "/v2/service_instances/ready-1", "", 404)
			b.provision("ready-1", "sync", 0, 201)
		})
	}
}

func TestReaperReport(t *testing.T) {
	t.Parallel() // it waits for the reaper
	b := newBench(t)
	deadline := time.Now().Add(5 * time.Minute)
	for !strings.Contains(b.operate(0, "reaper", "report"), "inventory: things") {
		if time.Now().After(deadline) {
			t.Fatal("no inventory is reported")
		}
		time.Sleep(200 * time.Millisecond) // the embedded broker has a clock of its own
	}
	has(t, b.operate(0, "reaper", "resume"), "goes on")
	has(t, b.operate(0, "reaper", "quarantine"), "Nothing is in quarantine.")
	has(t, b.operate(1, "reaper", "release", "thing"), `nothing in quarantine is called "thing"`, "longshore reaper quarantine")
	has(t, b.operate(1, "reaper", "delete", "thing"), "say --yes")
	has(t, b.operate(1, "reaper", "delete", "thing", "--yes"), `nothing in quarantine is called "thing"`)
	has(t, b.operate(0, "retained"), "Nothing is retained.")
	has(t, b.operate(0, "upgrades"), "No instance is behind its plan.")
	for _, list := range [][]string{{"reaper", "quarantine"}, {"retained"}, {"upgrades"}, {"instances"}} {
		expect.Same(t, fmt.Sprintf("an empty %v", list), "[]", strings.TrimSpace(b.operate(0, append(list, "-o", "json")...)))
	}
	has(t, b.operate(2, "reaper", "dance"), "report, resume")
	has(t, b.operate(2, "instances", "a", "b"), `does not take "b"`)
	has(t, b.operate(2, "instances", "-o", "xml"), `--output does not take "xml": give table, wide or json`)
	has(t, b.operate(2, "instances", "--sort", "size"), `--sort does not take "size": give instance, state, `, "operation")
	has(t, b.operate(2, "reaper", "report", "-o", "xml"), `--output does not take "xml": give table, wide or json`)
	has(t, b.operate(0, "instances", "--help"), "longshore instances [ID]")
	has(t, b.operate(0, "platform", "list", "--help"), "longshore platform list")
}

// quickly has the demo take hardly any time.
func quickly(name string) string { return map[string]string{app.EnvDemoDelay: "10ms"}[name] }

// An operator erases one of two users, from the broker that runs and from the folder at rest, and no message names the user.
func TestForget(t *testing.T) {
	b := newBench(t)
	asks := func(user string) {
		b.asker = "cloudfoundry " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"user_name":%q}`, user))
	}
	for _, user := range []string{"ann", "bob"} {
		asks(user)
		b.provision("of-"+user, "sync", 0, 201)
	}
	forgets := func(want int, args ...string) string {
		t.Helper()
		said := b.operate(want, append([]string{"forget"}, args...)...)
		expect.Never(t, "what is told", said, "ann", "bob")
		return said
	}
	has(t, forgets(1, "ann"), "say --yes")
	has(t, forgets(0, "ann", "--yes"), "1 history entries and 1 operations no longer say who asked.\n")
	has(t, forgets(0, "ann", "--yes"), "0 history entries and 0 operations")
	asks("ann")
	b.provision("slow", "async", 3600, 202)
	has(t, forgets(0, "ann", "--yes"), "1 operations of this user are still in progress and say who asked: repeat the command")
	b.stop()
	has(t, forgets(0, "bob", "--yes"), "1 history entries and 1 operations")
	left := map[string]bool{}
	records := expect.Get(bolt.Open(b.dir+"/longshore.db", bolt.Options{MustExist: true, ReadOnly: true}))(t)
	defer func() { _ = records.Close() }()
	all, _, err := ledger.New(records, app.NewID).ScanPage(t.Context(), "", true)
	if err != nil || len(all.Entries) != 2 {
		t.Fatal(len(all.Entries), err)
	}
	for _, e := range all.Entries {
		left[e.Key.Instance] = !e.Asker.IsZero()
	}
	for _, r := range all.Records {
		left[r.Key.Instance] = left[r.Key.Instance] || !r.Operation.Asker.IsZero()
	}
	expect.Same(t, "what still tells who asked", map[string]bool{"of-ann": false, "of-bob": false, "slow": true}, left)
}
