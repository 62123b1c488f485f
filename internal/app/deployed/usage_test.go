package deployed_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

var update = flag.Bool("update", false, "write what is counted to testdata/usage.json, from which docs/costs.md is computed")

// usage is what AWS bills for.
type usage struct {
	// Requests are the gateway's, each of which calls the API; Waits are those of them that waited for the provisioner.
	Requests, Waits int
	// Steps are calls of the provisioner, Delays those that wait out the demo's delay.
	Steps, Delays int
	// Transitions are states of Step Functions that were entered.
	Transitions int
	// ReadUnits and WriteUnits are DynamoDB's, those of the index among them.
	ReadUnits, WriteUnits float64
	// KeyCalls are the vault's to KMS, ThingCalls the demo's to Parameter Store.
	KeyCalls, ThingCalls int
	// Metrics are those that were written, each with its dimensions.
	Metrics int
	// Others are calls that nobody here can count, such as those that make the table for a test.
	Others []string `json:",omitempty"`

	calls map[string]int // of DynamoDB and KMS, by their actions
}

// A meter counts at the wire. It knows what each write makes of an item, which DynamoDB bills by the larger of before and after.
type meter struct {
	next aws.HTTPClient

	mu    sync.Mutex
	used  usage
	items map[string]item
}

// item is what a table or its index holds of a key.
type item struct {
	bytes int
	due   string // its place in the index; empty for none
}

// newMeter counts the calls of a configuration.
func newMeter(cfg *aws.Config) *meter {
	m := &meter{next: cfg.HTTPClient, items: map[string]item{}}
	m.taken()
	cfg.HTTPClient = m
	return m
}

func (m *meter) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := m.next.Do(r)
	if err == nil {
		m.count(r.Header.Get("X-Amz-Target"), body, response.StatusCode == http.StatusOK)
	}
	return response, err
}

func (m *meter) count(target string, body []byte, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	service, action, _ := strings.Cut(target, ".")
	var in struct {
		Item, Key      map[string]map[string]any
		ConsistentRead bool
		TransactItems  []map[string]struct{ Item, Key map[string]map[string]any }
		RequestItems   map[string]struct{ Keys []map[string]map[string]any }
	}
	_ = json.Unmarshal(body, &in) // of other services it has none of these
	if strings.HasPrefix(service, "DynamoDB") || strings.HasPrefix(service, "TrentService") {
		m.used.calls[action]++
	}
	switch {
	case strings.HasPrefix(service, "TrentService"):
		m.used.KeyCalls++
	case strings.HasPrefix(service, "AmazonSSM"):
		m.used.ThingCalls++
	case !strings.HasPrefix(service, "DynamoDB"):
	case action == "GetItem":
		m.used.ReadUnits += m.read(in.Key, in.ConsistentRead)
	case action == "Query":
		m.used.ReadUnits += units(0, 1, in.ConsistentRead)
	case action == "BatchGetItem":
		for _, keys := range in.RequestItems {
			for _, key := range keys.Keys {
				m.used.ReadUnits += m.read(key, true)
			}
		}
	case action == "PutItem":
		m.used.WriteUnits += m.write(in.Item, in.Item, done)
	case action == "DeleteItem":
		m.used.WriteUnits += m.write(in.Key, nil, done)
	case action == "TransactWriteItems":
		for _, each := range in.TransactItems {
			for verb, part := range each {
				switch verb {
				case "Put":
					m.used.WriteUnits += 2 * m.write(part.Item, part.Item, done)
				case "Delete":
					m.used.WriteUnits += 2 * m.write(part.Key, nil, done)
				default: // a check is billed as a write
					m.used.WriteUnits += 2 * math.Max(1, math.Ceil(float64(m.items[keyOf(part.Key)].bytes)/1024))
				}
			}
		}
	default:
		m.used.Others = append(m.used.Others, target)
	}
}

func (m *meter) read(key map[string]map[string]any, consistent bool) float64 {
	return units(m.items[keyOf(key)].bytes, 4096, consistent)
}

// units are read units: half as many where an answer may be old.
func units(size, unit int, consistent bool) float64 {
	n := math.Max(1, math.Ceil(float64(size)/float64(unit)))
	if !consistent {
		n /= 2
	}
	return n
}

// write gives the units of replacing an item; nil removes it. A write that is refused is billed all the same.
func (m *meter) write(key, to map[string]map[string]any, done bool) float64 {
	before := m.items[keyOf(key)]
	var after item
	for name, value := range to {
		after.bytes += len(name) + sizeOf(value)
		if name == dynamo.AttributeDue {
			after.due = fmt.Sprint(value)
		}
	}
	n := math.Max(1, math.Ceil(float64(max(before.bytes, after.bytes))/1024))
	if !done {
		return n
	}
	m.items[keyOf(key)] = after
	if before.due != after.due { // one place of the index is emptied, another filled
		for _, due := range []string{before.due, after.due} {
			if due != "" {
				n++
			}
		}
	}
	return n
}

func keyOf(attributes map[string]map[string]any) string {
	return fmt.Sprint(attributes[dynamo.AttributePartition], attributes[dynamo.AttributeSort])
}

func sizeOf(value map[string]any) int {
	for kind, v := range value {
		text := fmt.Sprint(v)
		if kind == "B" {
			return base64.StdEncoding.DecodedLen(len(text))
		}
		return len(text)
	}
	return 0
}

// taken gives what was counted since it was last asked.
func (m *meter) taken() usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.used
	m.used = usage{calls: map[string]int{}}
	return out
}

// slowly is a delay that has not passed before the first step, on a busy machine either.
var slowly = map[string]string{app.EnvDemoDelay: "3s"}

// TestUsage counts what an instance's life takes, and a reaper that finds nothing: docs/costs.md computes its prices from both.
func TestUsage(t *testing.T) {
	const file = "testdata/usage.json"
	cfg := emulator.Config(t)
	m := newMeter(&cfg)
	f := newTogether(t, cfg, slowly)
	service, plan := f.plan("demo", "async")
	sweep := func() { expect.Get(f.sweep(t.Context()))(t) }
	got := map[string]usage{}
	m.taken()
	sweep() // with the inventory of each hour
	got["inventory"] = m.taken()
	f.counts.Reset()
	sweep()
	idle := m.taken()
	idle.Metrics = f.written()
	got["sweep"] = idle
	got["life"] = f.life(m, service, plan)
	raw := append(expect.Get(json.MarshalIndent(got, "", "  "))(t), '\n')
	if *update {
		expect.OK(t, os.WriteFile(file, raw, 0o644))
	}
	expect.Same(t, file+" is of another time: run this test with -update, and then ./infra with -update",
		string(expect.Get(os.ReadFile(file))(t)), string(raw))
}

// written counts the metrics that the functions wrote.
func (f *together) written() int {
	f.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(f.counts.String()) {
		var m struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		expect.OK(f, json.Unmarshal([]byte(line), &m), line)
		for _, d := range m.AWS.CloudWatchMetrics {
			for _, each := range d.Metrics {
				all[fmt.Sprint(each.Name, d.Dimensions)] = true
			}
		}
	}
	return len(all)
}

// life is that of an instance and one binding, as Cloud Foundry has it: it says who
// asks and in which context, takes 202, and asks about each operation until it is done.
func (f *together) life(m *meter, service, plan string) usage {
	var used usage
	call := func(method, path, query, body string, status int) map[string]any {
		f.Helper()
		used.Requests++
		steps := f.here.invoked
		out := f.call(method, path, query, body, status)
		if f.here.invoked > steps {
			used.Waits++
			used.Steps++
		}
		return out
	}
	const path, bound = "/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"
	ids := "accepts_incomplete=true&service_id=" + service + "&plan_id=" + plan
	const place = `"organization_guid":"8a9c3d5e-0c1f-4d39-9c5e-5c8f0a1b2c3d",` +
		`"space_guid":"1b2c3d4e-5f60-4718-89aa-bbccddeeff00",`
	const told = `"context":{"platform":"cloudfoundry",` + place +
		`"organization_name":"org","space_name":"space","instance_name":"my-instance"}`
	order := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,`+place+`"parameters":{"a":1},`+told+`}`, service, plan)
	settle := func(path string) {
		f.Helper()
		call("GET", path+"/last_operation", "", "", 200)
		rounds, executions := f.drive()
		used.Steps += rounds + executions
		used.Delays += executions
		used.Transitions += rounds*stepfunctions.TransitionsOfRound + executions*stepfunctions.TransitionsOfLast
		call("GET", path+"/last_operation", "", "", 200)
	}
	call("PUT", path, "accepts_incomplete=true", order, 202)
	settle(path)
	call("PUT", bound, "accepts_incomplete=true", fmt.Sprintf(`{"service_id":%q,"plan_id":%q,`+told+`}`, service, plan), 201)
	call("DELETE", bound, ids, "", 200)
	call("DELETE", path, ids, "", 202)
	settle(path)
	counted := m.taken()
	counted.Requests, counted.Waits, counted.Steps, counted.Delays, counted.Transitions =
		used.Requests, used.Waits, used.Steps, used.Delays, used.Transitions
	return counted
}

// Requests and steps make no more calls of DynamoDB and KMS than these, counted at the wire. A
// write is a PutItem, or a transaction where records must change together.
func TestWhatRequestsCost(t *testing.T) {
	cfg := emulator.Config(t)
	counted := newMeter(&cfg)
	f := newTogether(t, cfg, slowly)
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
			expect.Same(t, "nothing was due", true, expect.Get(f.sweep(t.Context()))(t).Empty())
		}, map[string]int{"Query": 8}},
	}
	for _, s := range steps {
		s.do()
		expect.Same(t, s.what, s.want, counted.taken().calls)
	}
	f.drive()
}
