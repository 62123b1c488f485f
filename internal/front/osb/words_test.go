package osb_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A path is refused for what is wrong with it.
func TestRefusedPathsSayWhy(t *testing.T) {
	for name, c := range map[string]struct{ id, says string }{
		"Null":    {"a%00b", "control character"},
		"Newline": {"a%0Ab", "control character"},
		"C1":      {"a%C2%85b", "control character"},
		"NotUTF8": {"a%FFb", "not valid percent-encoded UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			w := send(t, newServer(t, &stub{}, io.Discard), http.MethodGet, "/v2/service_instances/"+c.id, "")
			if said, _ := bodyOf(t, w)["description"].(string); w.Code != http.StatusBadRequest ||
				!strings.Contains(said, c.says) {
				t.Errorf("%d %q, want 400 and %q", w.Code, said, c.says)
			}
		})
	}
}

// A client that speaks a version without asynchronous bindings learns which version
// has them; to others the sentence is the one that they know word for word (ERR-03).
func TestOldClientsLearnWhichVersionBindsAsynchronously(t *testing.T) {
	const ids = "?service_id=s&plan_id=p&accepts_incomplete=true"
	for name, c := range map[string]struct {
		method, path, version string
		namesVersion          bool
	}{
		"Bind":      {http.MethodPut, "/v2/service_instances/i/service_bindings/b", "2.13", true},
		"Unbind":    {http.MethodDelete, "/v2/service_instances/i/service_bindings/b" + ids, "2.13", true},
		"NewBind":   {http.MethodPut, "/v2/service_instances/i/service_bindings/b", "2.14", false},
		"Provision": {http.MethodPut, "/v2/service_instances/i", "2.13", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &stub{err: lifecycle.RefuseAsyncRequired()}
			w := send(t, newServer(t, b, io.Discard), c.method, c.path, provisionBody, "X-Broker-API-Version", c.version)
			body := bodyOf(t, w)
			said, _ := body["description"].(string)
			if w.Code != http.StatusUnprocessableEntity || body["error"] != "AsyncRequired" ||
				!strings.HasPrefix(said, lifecycle.AsyncRequiredSentence) ||
				strings.Contains(said, "from version 2.14") != c.namesVersion {
				t.Errorf("%d %v", w.Code, body)
			}
		})
	}
}
