package osb_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/rates"
)

// A platform that asks too much is told when to come back, and neither its body
// nor anything that is kept is read for it. A login that fails is not counted.
func TestAPlatformThatAsksTooMuch(t *testing.T) {
	b := &stub{}
	s := newServer(t, b, io.Discard)
	now := epoch
	s.Throttle = rates.New(1, func() time.Time { return now })
	for range 10 {
		if w := send(t, s, "GET", "/v2/catalog", "", "Authorization", "Basic eDp5"); w.Code != 401 {
			t.Fatalf("a wrong login is answered %d", w.Code)
		}
	}
	for range 2 {
		if w := send(t, s, "GET", "/v2/service_instances/i", ""); w.Code != 200 {
			t.Fatalf("within the rate: %d %s", w.Code, w.Body)
		}
	}
	b.asked = nil
	r := httptest.NewRequest("PUT", "/v2/service_instances/i?accepts_incomplete=true", unread{t})
	r.SetBasicAuth("u", "p:w")
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	now = now.Add(100 * time.Millisecond)
	s.ServeHTTP(w, r)
	if body := bodyOf(t, w); w.Code != 429 || w.Header().Get("Retry-After") != "1" || body["error"] != "TooManyRequests" ||
		!strings.HasSuffix(body["description"].(string), ".") {
		t.Errorf("beyond the rate: %d, Retry-After %q, %v", w.Code, w.Header().Get("Retry-After"), body)
	}
	if b.asked != nil {
		t.Errorf("the broker was asked %v", b.asked)
	}
	if now = now.Add(time.Second); send(t, s, "GET", "/v2/service_instances/i", "").Code != 200 {
		t.Error("a second later it is refused")
	}
}

// unread is a body that nobody is to read.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body is read")
	return 0, io.EOF
}
