package released_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// The ids of the demo's offerings never change once published.
const (
	service = "f95c6dc5-becc-415a-96b6-c5997d1a68fe"
	plan    = "4dcb3699-4e64-40fe-aa3b-ec0d58a96028"
	hints   = "service_id=" + service + "&plan_id=" + plan
	async   = "?accepts_incomplete=true"
)

// A broker stands on a table, and drives operations to their end at once, unless its engine is idle.
type broker struct {
	*testing.T
	testkit.Driver
	clock time.Time
}

func newBroker(t *testing.T, table string, compiled []byte, now time.Time) *broker {
	t.Helper()
	b := &broker{T: t, clock: now}
	b.Clock = &b.clock
	read := func() time.Time { return b.clock }
	b.Kit = testkit.New(testkit.Options{Store: dynamo.New(dynamodb.NewFromConfig(emulator.Config(t)), table),
		Now: read, Engine: &b.Driver, Catalog: expect.Get(catalog.Open(compiled))(t),
		Providers: map[string]provider.Provider{"demo": demo.New(time.Second, read)}})
	return b
}

// call sends a request and requires a status.
func (b *broker) call(method, path, body string, status int) (out map[string]any) {
	b.Helper()
	b.clock = b.clock.Add(time.Second)
	r := httptest.NewRequest(method, "/v2/service_instances/"+path, strings.NewReader(body))
	r.SetBasicAuth("u", testkit.Password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	b.Kit.Handler(b.Kit.Broker(), testkit.Platforms{"u": platforms.Identity{ID: "default"}}).ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != status {
		b.Fatalf("%s %s: %d %s %v, want %d", method, path, w.Code, w.Body, err, status)
	}
	return out
}

func order(more string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"%s}`, service, plan, more)
}

// An item is one of a table. The store writes no other types of attributes.
type item map[string]struct {
	S, N *string
	B    []byte
}

// release has the program of now leave a table, amid operations, and its catalog.
func release(t *testing.T, to string) {
	t.Helper()
	compiled := expect.Get(offeringfiles.Compile("", nil))(t)
	client := dynamodb.NewFromConfig(emulator.Config(t))
	table := dynamotest.NewTable(t, client)
	b := newBroker(t, table, compiled, testkit.Epoch)
	b.call("PUT", "ready"+async, order(`,"parameters":{"note":"of the release"},"context":{"platform":"cloudfoundry",`+
		`"organization_name":"an organization","space_name":"a space","instance_name":"a name"}`), 202)
	given := b.call("PUT", "ready/service_bindings/b"+async, order(""), 201)["credentials"]
	b.call("PUT", "failed"+async, order(`,"parameters":{"fail":true}`), 202)
	b.call("PUT", "deleting"+async, order(""), 202)
	b.call("PUT", "deleted"+async, order(""), 202)
	b.call("DELETE", "deleted"+async+"&"+hints, "", 202)
	b.Idle = true
	b.call("DELETE", "deleting"+async+"&"+hints, "", 202)
	b.call("PUT", "creating"+async, order(""), 202)
	var items []item
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table}); pages.HasMorePages(); {
		for _, stored := range expect.Get(pages.NextPage(t.Context()))(t).Items {
			items = append(items, kept(t, stored))
		}
	}
	expect.OK(t, os.MkdirAll(to, 0o755))
	dump := expect.Get(json.MarshalIndent(items, "", " "))(t)
	credentials := expect.Get(json.MarshalIndent(given, "", "  "))(t)
	for name, content := range map[string][]byte{"catalog.dat": compiled, "table.json": dump, "credentials.json": credentials} {
		expect.OK(t, os.WriteFile(filepath.Join(to, name), content, 0o644))
	}
}

func kept(t *testing.T, stored map[string]types.AttributeValue) item {
	t.Helper()
	out := item{}
	for name, value := range stored {
		one := out[name]
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			one.S = &v.Value
		case *types.AttributeValueMemberN:
			one.N = &v.Value
		case *types.AttributeValueMemberB:
			one.B = v.Value
		default:
			t.Fatalf("attribute %s is a %T", name, value)
		}
		out[name] = one
	}
	return out
}

// restored puts the items of a release into a table.
func restored(t *testing.T, folder string) (table string) {
	t.Helper()
	client := dynamodb.NewFromConfig(emulator.Config(t))
	table = dynamotest.NewTable(t, client)
	var items []item
	read(t, folder, "table.json", &items)
	for _, i := range items {
		put := map[string]types.AttributeValue{}
		for name, v := range i {
			switch {
			case v.S != nil:
				put[name] = &types.AttributeValueMemberS{Value: *v.S}
			case v.N != nil:
				put[name] = &types.AttributeValueMemberN{Value: *v.N}
			default:
				put[name] = &types.AttributeValueMemberB{Value: v.B}
			}
		}
		expect.Get(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: put}))(t)
	}
	return table
}

func read(t *testing.T, folder, name string, into any) {
	t.Helper()
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(filepath.Join(folder, name)))(t), into))
}

// Every version goes on with the table and the catalog of each earlier one: what is ready can be used, the reaper restarts
// what was under way, and all of it can be deleted. RELEASE=v0.1.0 writes those of a new release.
func TestReleasedTables(t *testing.T) {
	if version := os.Getenv("RELEASE"); version != "" {
		release(t, filepath.Join("testdata", version))
	}
	folders, err := filepath.Glob("testdata/v*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there is no release: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { goOn(t, folder) })
	}
}

func goOn(t *testing.T, folder string) {
	compiled := expect.Get(os.ReadFile(filepath.Join(folder, "catalog.dat")))(t)
	b := newBroker(t, restored(t, folder), compiled, testkit.Epoch.Add(time.Hour))
	if report, err := b.Kit.Reaper().Sweep(t.Context()); err != nil || report.Redriven != 2 {
		t.Errorf("the reaper restarted %+v: %v", report, err)
	}
	var given any
	read(t, folder, "credentials.json", &given)
	got := b.call("GET", "ready/service_bindings/b", "", 200)["credentials"]
	expect.Same(t, "the credentials that the release gave", given, got)
	for id, want := range map[string]string{"ready": "succeeded", "creating": "succeeded", "failed": "failed"} {
		expect.Same[any](t, id+" ended", want, b.call("GET", id+"/last_operation", "", 200)["state"])
	}
	for _, id := range []string{"deleted", "deleting"} {
		b.call("GET", id, "", 404)
	}
	b.call("PATCH", "ready"+async, `{"service_id":"`+service+`","parameters":{"note":"of a later version"}}`, 202)
	b.call("DELETE", "ready/service_bindings/b"+async+"&"+hints, "", 200)
	for _, id := range []string{"ready", "creating", "failed"} {
		b.call("DELETE", id+async+"&"+hints, "", 202)
		b.call("GET", id, "", 404)
	}
}
