package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

var update = flag.Bool("update", false, "write the tables of docs/costs.md")

// The limits that the documentation promises.
const (
	mostIdle = 2.00   // dollars a month
	mostLife = 0.0003 // dollars
	// The life of an AWS service may cost this much if it settles within a minute, or ten: its
	// provision and its deprovision together.
	mostOfMinute, mostOfTenMinutes = 0.001, 0.004 // dollars
)

// Assumptions, since no emulator measures these.
const (
	hoursAMonth = 730
	// sweepTime is that of a sweep that finds nothing: eight queries.
	sweepTime = 0.05 // s
	// requestTime is that of a request that waits for nobody, and stepTime that of a step beside the demo's delay.
	requestTime, stepTime = 0.05, 0.5 // s
	// lineBytes is what one call of a function comes to in its log, AWS's own
	// lines included, and sweepBytes that of a sweep with nothing to say.
	lineBytes, sweepBytes = 2000, 1000
	// tableKeyCalls an hour are DynamoDB's, for the key of its table.
	tableKeyCalls = 12
	// uploaded is what the functions come to, and recorded what 10 000 of 2 kB do.
	uploaded, recorded = 0.013, 0.02 // GB
)

// usage is what internal/app/deployed and internal/provider/cloudformation count at the wire.
type usage struct {
	Requests, Waits, Steps, Delays, Transitions int
	Calls, Looks                                int // of the life of an AWS service
	Seconds                                     float64
	ReadUnits, WriteUnits                       float64
	KeyCalls, Metrics                           int
}

// counted is what a package has counted, by its names.
func counted(t *testing.T, where string) (all map[string]usage) {
	t.Helper()
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile("../internal/"+where+"/testdata/usage.json"))(t), &all))
	return all
}

// A line of a table says what costs, how that is counted, and how much it is.
type line struct {
	what, how string
	dollars   float64
}

func together(lines []line) (sum float64) {
	for _, l := range lines {
		sum += l.dollars
	}
	return sum
}

// memory is a function's, in GB.
func memory(t *testing.T, made template, function string) float64 {
	return functions(t, made)[function]["MemorySize"].(float64) / 1024
}

// idle is what a stack costs in a month in which nobody asks anything of it.
func idle(t *testing.T, made template) []line {
	t.Helper()
	all := counted(t, "app/deployed")
	sweep, inventory := all["sweep"], all["inventory"]
	if rate := made.one(t, "AWS::Events::Rule", "ScheduleRule")["ScheduleExpression"]; rate != "rate(1 minute)" {
		t.Fatalf("the reaper is called at %v, which nobody here can count", rate)
	}
	const sweeps = hoursAMonth * 60
	keys, secrets := float64(len(made.of("AWS::KMS::Key"))), float64(len(made.of("AWS::SecretsManager::Secret")))
	alarms, fast := 0.0, 0.0
	for id, p := range made.all("AWS::CloudWatch::Alarm") {
		if p["Metrics"] != nil {
			t.Fatalf("alarm %q is of several metrics, which nobody here can count", id)
		}
		if alarms++; p["Period"].(float64) < 60 {
			fast++
		}
	}
	gb := memory(t, made, FunctionReaper)
	seconds := sweeps * gb * sweepTime
	often := func(bySweep, byInventory float64) (sum float64, how string) {
		sum = sweeps*bySweep + hoursAMonth*byInventory
		return sum, fmt.Sprintf("%.0f units: %g a sweep, %g an hour for the inventory", sum, bySweep, byInventory)
	}
	reads, ofReads := often(sweep.ReadUnits, inventory.ReadUnits)
	writes, ofWrites := often(sweep.WriteUnits, inventory.WriteUnits)
	lines := []line{
		{"key", fmt.Sprintf("%g; after its first rotation 2.00, after its second and for ever 3.00", keys), priceKey.of(keys)},
		{"secret", fmt.Sprintf("%g", secrets), priceSecret.of(secrets)},
		{"alarms", fmt.Sprintf("%g, on one metric each", alarms), priceAlarm.of(alarms-fast) + priceFastAlarm.of(fast)},
		{"metrics of its own", fmt.Sprintf("%d that an idle sweep writes", sweep.Metrics),
			priceMetric.of(float64(sweep.Metrics))},
		{"reaper, calls", fmt.Sprintf("%d, one each minute", sweeps), priceCall.of(sweeps)},
		{"reaper, time", fmt.Sprintf("%d × %g GB × %g s (assumed) = %.0f GB-s", sweeps, gb, sweepTime, seconds),
			priceGBSecond.of(seconds)},
		{"reaper, reads", ofReads, priceRead.of(reads)},
		{"reaper, writes", ofWrites, priceWrite.of(writes)},
		{"reaper, log", fmt.Sprintf("%d × %d bytes (assumed)", sweeps, sweepBytes), priceLog.of(sweeps * sweepBytes)},
		{"schedule", fmt.Sprintf("%d events, as if they were one's own: AWS lists no price for a schedule's", sweeps),
			priceEvent.of(sweeps)},
		{"table's key", fmt.Sprintf("%d × %d calls an hour by DynamoDB (assumed)", hoursAMonth, tableKeyCalls),
			priceKeyCall.of(hoursAMonth * tableKeyCalls)},
		{"table", fmt.Sprintf("10,000 records of 2 kB, with recovery to any second: %g GB", recorded), priceTableGB.of(recorded)},
		{"what was uploaded", fmt.Sprintf("%g GB for each deployment that changed the functions", uploaded),
			priceS3GB.of(uploaded)},
	}
	if n := len(made.of("AWS::CloudWatch::Dashboard")); n > 0 {
		lines = append(lines, line{"dashboard", fmt.Sprint(n), priceDashboard.of(float64(n))})
	}
	if at(functions(t, made)[FunctionReaper], "TracingConfig", "Mode") == "Active" {
		lines = append(lines, line{"tracing", fmt.Sprintf("%d sweeps", sweeps), priceTrace.of(sweeps)})
	}
	for _, p := range made.all("AWS::WAFv2::WebACL") {
		rules := float64(len(list(p["Rules"])))
		lines = append(lines, line{"web ACL", fmt.Sprintf("one, with %g rule", rules),
			priceWebACL.of(1) + priceWebACLRule.of(rules)})
	}
	return lines
}

// lifetime is what an instance's whole life costs.
func lifetime(t *testing.T, made template, u usage) []line {
	t.Helper()
	requests, steps, delay := float64(u.Requests), float64(u.Steps), app.DefaultDemoDelay.Seconds()
	api := memory(t, made, FunctionAPI) * (requests*requestTime + float64(u.Waits)*stepTime)
	provisioner := memory(t, made, FunctionProvisioner) * (steps*stepTime + float64(u.Delays)*delay)
	return life(u, steps, api, provisioner,
		fmt.Sprintf("%g calls of %g s, %d of which wait %g s for the provisioner (times assumed)", requests, requestTime, u.Waits,
			stepTime),
		fmt.Sprintf("%g calls of %g s (assumed), %d of which wait out the demo's delay of %g s", steps, stepTime, u.Delays,
			delay))
}

// serviceLife is what the life of an AWS service costs.
func serviceLife(t *testing.T, made template, u usage) []line {
	t.Helper()
	requests, calls := float64(u.Requests), float64(u.Calls)
	api, provisioner := memory(t, made, FunctionAPI)*requests*requestTime, memory(t, made, FunctionProvisioner)*u.Seconds
	return life(u, calls, api, provisioner, fmt.Sprintf("%g calls of %g s (assumed)", requests, requestTime),
		fmt.Sprintf("%g calls, %d looks, %g s", calls, u.Looks, u.Seconds))
}

// life has the lines of any life: calls are the provisioner's, and both functions take GB-seconds, counted as is said.
func life(u usage, calls, api, provisioner float64, apiSaid, provisionerSaid string) []line {
	requests := float64(u.Requests)
	return []line{
		{"gateway", fmt.Sprintf("%g requests", requests), priceRequest.of(requests)},
		{"API", fmt.Sprintf("%s; %.2f GB-s", apiSaid, api), priceCall.of(requests) + priceGBSecond.of(api)},
		{"provisioner", fmt.Sprintf("%s; %.2f GB-s", provisionerSaid, provisioner),
			priceCall.of(calls) + priceGBSecond.of(provisioner)},
		{"Step Functions", fmt.Sprintf("%d transitions", u.Transitions), priceTransition.of(float64(u.Transitions))},
		{"DynamoDB, reads", fmt.Sprintf("%g units", u.ReadUnits), priceRead.of(u.ReadUnits)},
		{"DynamoDB, writes", fmt.Sprintf("%g units, those of the index among them", u.WriteUnits), priceWrite.of(u.WriteUnits)},
		{"KMS", fmt.Sprintf("%d calls", u.KeyCalls), priceKeyCall.of(float64(u.KeyCalls))},
		{"logs", fmt.Sprintf("%g calls × %d bytes (assumed)", requests+calls, lineBytes),
			priceLog.of((requests + calls) * lineBytes)},
	}
}

// poll is what a platform's question costs while an operation runs.
func poll(t *testing.T, made template) []line {
	t.Helper()
	gb := memory(t, made, FunctionAPI)
	return []line{
		{"gateway", "1 request", priceRequest.of(1)},
		{"API", fmt.Sprintf("1 call of %g s (assumed) × %g GB", requestTime, gb),
			priceCall.of(1) + priceGBSecond.of(gb*requestTime)},
		{"DynamoDB", "1 read unit", priceRead.of(1)},
		{"log", fmt.Sprintf("%d bytes (assumed)", lineBytes), priceLog.of(lineBytes)},
	}
}

// table writes lines with a sum, with so many digits of a dollar.
func table(lines []line, digits int, unit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | counted | %s |\n| --- | --- | --- |\n", unit)
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %.*f |\n", l.what, l.how, digits, l.dollars)
	}
	fmt.Fprintf(&b, "| **together** | | **%.*f** |\n", digits, together(lines))
	return b.String()
}

// options are what is not there unless it is asked for, each by itself.
func options(t *testing.T, usual float64) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| on request | $ a month more |\n| --- | --- |\n")
	for _, name := range []string{ContextDashboard + "=true", ContextTracing + "=true", ContextWebACL + "=" + WebACLBuilt,
		app.ProviderCloudFormation + "=" + Offered} {
		key, value, _ := strings.Cut(name, "=")
		made := expect.Get(synthesized(map[string]any{key: value}))(t)
		fmt.Fprintf(&b, "| `-c %s` | %.2f |\n", name, together(idle(t, made))-usual)
	}
	b.WriteString("\nThe last is an alarm, which any provider but the demo brings along.\n")
	fmt.Fprintf(&b, "\nA web ACL also costs $%.2f for a million requests.\n", priceWebACLAsked.of(million))
	return b.String()
}

// The guide says what is counted, and what is counted keeps what was promised.
func TestCost(t *testing.T) {
	const guide = "../docs/costs.md"
	made, services := must(t, usual), counted(t, "provider/cloudformation")
	month, life := idle(t, made), lifetime(t, made, counted(t, "app/deployed")["life"])
	minute, tenMinutes := serviceLife(t, made, services["minute"]), serviceLife(t, made, services["ten_minutes"])
	if m, ten := together(minute), together(tenMinutes); m > mostOfMinute || ten > mostOfTenMinutes {
		t.Errorf("the life of an AWS service costs $%.6f, or $%.6f where it takes ten minutes: more than $%.3f and $%.3f", m, ten,
			mostOfMinute, mostOfTenMinutes)
	}
	if sum := together(month); sum > mostIdle {
		t.Errorf("an idle stack costs $%.2f a month, more than $%.2f", sum, mostIdle)
	}
	if sum := together(life); sum > mostLife {
		t.Errorf("an instance's life costs $%.6f, more than $%.6f", sum, mostLife)
	}
	was := expect.Get(os.ReadFile(guide))(t)
	now := was
	for name, text := range map[string]string{
		"prices": fmt.Sprintf("List prices of us-east-1 and arm64 as of %s, in US dollars, without taxes and without what is "+
			"free for an account.\n", pricesAsOf),
		"idle": table(month, 4, "$ a month"), "options": options(t, together(month)),
		"life": table(life, 7, "$"), "poll": table(poll(t, made), 7, "$"),
		"service": table(minute, 7, "$"), "slow-service": table(tenMinutes, 7, "$"),
	} {
		begin, end := []byte("<!-- cost: "+name+" -->\n"), []byte("<!-- end -->\n")
		head, rest, found := bytes.Cut(now, begin)
		_, tail, closed := bytes.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for %q", guide, name)
		}
		now = bytes.Join([][]byte{head, begin, []byte(text), end, tail}, nil)
	}
	if bytes.Equal(was, now) {
		return
	}
	if !*update {
		t.Fatalf("%s is of another time: run this test with -update", guide)
	}
	expect.OK(t, os.WriteFile(guide, now, 0o644))
}
