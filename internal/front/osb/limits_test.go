package osb_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/broker"
)

// Each member that a record keeps has a bound: a longer one is answered 400 before anything is
// written, and one that just fits goes through (INP-13, INP-14).
func TestEveryMemberIsBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) string { return `{"x":"` + long(n-len(`{"x":""}`)) + `"}` }
	with := func(members string) string {
		return `{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"sp",` + members + `}`
	}
	const instance, binding = "/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"
	identity := func(n int) []string {
		header := "cf " + base64.StdEncoding.EncodeToString([]byte(object(n/2)))
		return []string{"X-Broker-API-Originating-Identity", header + long(n-len(header))}
	}
	cases := map[string]struct {
		method, path string
		body         func(n int) string
		header       func(n int) []string
		most         int
	}{
		"InstanceID": {"PUT", instance, nil, nil, limits.Identifier},
		"BindingID":  {"PUT", binding, nil, nil, limits.Identifier},
		"ServiceID": {"PUT", instance,
			func(n int) string { return strings.Replace(provisionBody, `"s"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"PlanID": {"PATCH", instance, func(n int) string { return `{"service_id":"s","plan_id":"` + long(n) + `"}` }, nil,
			limits.Identifier},
		"Organization": {"PUT", instance,
			func(n int) string { return strings.Replace(provisionBody, `"o"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"Space": {"PUT", instance, func(n int) string { return strings.Replace(provisionBody, `"sp"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"SpaceInContext": {"PUT", instance, func(n int) string {
			return `{"service_id":"s","plan_id":"p","context":{"organization_guid":"o","space_guid":"` + long(n) + `"}}`
		}, func(int) []string { return []string{"X-Broker-API-Version", "2.9"} }, limits.Identifier},
		"Maintenance": {"PUT", instance,
			func(n int) string { return with(`"maintenance_info":{"version":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"AppGUID": {"PUT", binding, func(n int) string { return with(`"app_guid":"` + long(n) + `"`) }, nil, limits.Identifier},
		"ResourceAppGUID": {"PUT", binding,
			func(n int) string { return with(`"bind_resource":{"app_guid":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"Route": {"PUT", binding, func(n int) string { return with(`"bind_resource":{"route":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"Predecessor": {"PUT", binding, func(n int) string { return with(`"predecessor_binding_id":"` + long(n) + `"`) }, nil,
			limits.Identifier},
		"Parameters": {"PUT", instance, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"UpdateParameters": {"PATCH", instance, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"BindParameters": {"PUT", binding, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"Context": {"PUT", instance, func(n int) string { return with(`"context":` + object(n)) }, nil,
			limits.Context},
		"UpdateContext": {"PATCH", instance, func(n int) string { return with(`"context":` + object(n)) }, nil,
			limits.Context},
		"BindContext": {"PUT", binding, func(n int) string { return with(`"context":` + object(n)) }, nil,
			limits.Context},
		"OriginatorProvision": {"PUT", instance, nil, identity, limits.Identity},
		"OriginatorUpdate":    {"PATCH", instance, func(int) string { return with(`"x":1`) }, identity, limits.Identity},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for beyond := range 2 {
				n := tc.most + beyond
				path, body, header := tc.path, provisionBody, []string(nil)
				if tc.body != nil {
					body = tc.body(n)
				}
				if tc.header != nil {
					header = tc.header(n)
				}
				if tc.body == nil && tc.header == nil {
					path = path[:len(path)-1] + long(n)
				}
				b := &stub{result: broker.Result{Effect: broker.Accepted}}
				w := send(t, newServer(t, b, io.Discard), tc.method, path, body, header...)
				if want := beyond == 0; (w.Code == http.StatusAccepted) != want || (b.asked != nil) != want ||
					(w.Code == http.StatusBadRequest) == want {
					t.Errorf("%d bytes of %d: status %d, the broker was asked: %v: %s", n, tc.most, w.Code,
						b.asked != nil, w.Body)
				}
			}
		})
	}
}

// A deletion gets through whatever its audit header holds; what is too large to
// keep is left out (OID-03).
func TestDeletionsTakeAnyOriginator(t *testing.T) {
	for _, path := range []string{"/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"} {
		b := &stub{result: broker.Result{Effect: broker.Done}}
		identity := "cf " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", limits.Identity)))
		w := send(t, newServer(t, b, io.Discard), "DELETE", path+"?service_id=s&plan_id=p", "",
			"X-Broker-API-Originating-Identity", identity)
		if q, ok := b.asked.(broker.DeleteRequest); w.Code != http.StatusOK || !ok || q.Identity != nil {
			t.Errorf("status %d: %s; the identity has %d bytes", w.Code, w.Body, len(q.Identity))
		}
	}
}
