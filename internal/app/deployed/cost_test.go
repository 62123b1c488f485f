package deployed_test

import (
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// Requests and steps make no more calls of DynamoDB and KMS than these, counted at the wire. A
// write is a PutItem, or a transaction where records must change together.
func TestWhatRequestsCost(t *testing.T) {
	cfg := emulator.Config(t)
	counted := newMeter(&cfg)
	// On a busy machine, too, the first step comes before the delay has passed.
	f := newTogether(t, cfg, map[string]string{app.EnvDemoDelay: "3s"})
	service, plan := f.plan("demo", "async")
	const path, binding = "/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"
	provision := order(service, plan, `,"parameters":{"a":1},"context":{"platform":"cloudfoundry","instance_name":"name"}`)
	ids := "service_id=" + service + "&plan_id=" + plan
	expect.Get(f.sweep(t.Context()))(t) // takes the hour's inventory
	counted.taken()

	var operation string
	steps := []struct {
		what string
		do   func()
		want map[string]int
	}{
		{"the catalog", func() { f.call("GET", "/v2/catalog", "", "", 200) }, map[string]int{}},
		// Its parameters and its context are sealed together. The directory is read and written. The first request of
		// a table makes the table's data key.
		{"accepting a provision", func() {
			operation = f.call("PUT", path, "accepts_incomplete=true", provision, 202)["operation"].(string)
		}, map[string]int{"GenerateDataKey": 2, "GetItem": 3, "PutItem": 1, "TransactWriteItems": 1}},
		{"a poll", func() { f.call("GET", path+"/last_operation", "operation="+operation, "", 200) },
			map[string]int{"GetItem": 1}},
		{"the status resource", func() { f.call("GET", "/operations/"+operation, "", "", 202) }, map[string]int{"GetItem": 1}},
		{"the same provision again", func() { f.call("PUT", path, "accepts_incomplete=true", provision, 202) },
			map[string]int{"Decrypt": 1, "GetItem": 1}},
		// Each of two steps reads, leases and records; their one call opens once. The last one also writes the history.
		{"provisioning, in two steps", func() { f.drive() },
			map[string]int{"Decrypt": 1, "GetItem": 2, "PutItem": 3, "TransactWriteItems": 1}},
		{"a fetch", func() { f.call("GET", path, "", "", 200) }, map[string]int{"Decrypt": 1, "GetItem": 1}},
		{"a wrong request", func() { f.call("PUT", path, "", "{}", 400) }, map[string]int{}},
		{"a deletion of nothing", func() {
			f.call("DELETE", "/v2/service_instances/none", "accepts_incomplete=true&"+ids, "", 410)
		}, map[string]int{"GetItem": 1, "PutItem": 1}},
		{"fetching a binding that is not there", func() { f.call("GET", binding, "", "", 404) }, map[string]int{"GetItem": 1}},
		{"accepting a deletion", func() { f.call("DELETE", path, "accepts_incomplete=true&"+ids, "", 202) },
			map[string]int{"GetItem": 1, "TransactWriteItems": 1}},
		{"a sweep that finds nothing", func() {
			if report, err := f.sweep(t.Context()); err != nil || !report.Empty() {
				t.Fatal(report, err)
			}
		}, map[string]int{"Query": 8}},
	}
	for _, s := range steps {
		s.do()
		expect.Same(t, s.what, s.want, counted.taken().calls)
	}
	f.drive()
}
