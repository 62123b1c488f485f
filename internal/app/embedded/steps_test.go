package embedded

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/testkit"
)

// Ids that were never used before, a clock that is set back by five seconds, and
// deletions that must delete, now and after a restart.
func TestDeletionsAfterTheClockWasSetBack(t *testing.T) {
	const user, password = "platform", "a-password-of-a-platform"
	var back atomic.Int64 // how far the machine's clock is set back
	settings := Settings{Data: t.TempDir(), Username: user, Password: password,
		wall: func() time.Time { return app.Now().Add(-time.Duration(back.Load())) }}
	open := func() *Broker {
		t.Helper()
		e, err := Open(settings, testkit.Demo(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	defer func() { e.Close() }()
	var service, plan string
	for _, o := range e.offered.Offerings() {
		for _, p := range o.Plans {
			if o.Name == "demo" && p.Name == "sync" {
				service, plan = o.ID, p.ID
			}
		}
	}
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, "/v2/service_instances/"+path, strings.NewReader(body))
		r.SetBasicAuth(user, password)
		r.Header.Set("X-Broker-API-Version", "2.17")
		w := httptest.NewRecorder()
		e.Handler.ServeHTTP(w, r)
		answer, _ := io.ReadAll(w.Result().Body)
		return w.Code, string(answer)
	}
	wants := func(method, path, body string, want int) {
		t.Helper()
		if status, answer := ask(method, path, body); status != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, status, answer, want)
		}
	}
	ids := `{"service_id":"` + service + `","plan_id":"` + plan + `","organization_guid":"o","space_guid":"s"}`
	query := "?service_id=" + service + "&plan_id=" + plan
	for _, restarts := range []bool{false, true} {
		wants(http.MethodPut, "i", ids, http.StatusCreated)
		wants(http.MethodPut, "i/service_bindings/b", ids, http.StatusCreated)
		if restarts {
			e.Close()
			back.Store(0)
			e = open()
		}
		back.Store(int64(5 * time.Second))
		wants(http.MethodDelete, "i/service_bindings/b"+query, "", http.StatusOK)
		wants(http.MethodDelete, "i"+query, "", http.StatusOK)
		wants(http.MethodGet, "i", "", http.StatusNotFound)
	}
}

// Who may log in is decided by the machine's clock, by which the commands say until
// when: the broker's own goes on from a time that was wrong.
func TestAnOverlapEndsByTheMachinesClock(t *testing.T) {
	const user, old = "cf", "a-password-of-a-platform"
	settings := Settings{Data: t.TempDir(), Username: user, Password: old}
	open := func() *Broker {
		t.Helper()
		e, err := Open(settings, testkit.Demo(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	settings.wall = func() time.Time { return app.Now().AddDate(1, 0, 0) }
	e := open()
	service, plan := synchronous(t, e)
	asked(t, e, "PUT", "/v2/service_instances/i",
		`{"service_id":"`+service+`","plan_id":"`+plan+`","organization_guid":"o","space_guid":"s"}`)
	e.Close()
	settings.wall = nil
	open().Close()
	err := e.folder.Logins().Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		return r.Rotate(platforms.Default, platforms.NewPassword(), app.Now(), time.Hour)
	})
	if err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	if e.folder.Behind < time.Hour {
		t.Fatalf("the clock is %v behind: the test proves nothing", e.folder.Behind)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/catalog", nil)
	r.SetBasicAuth(user, old)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	if e.Handler.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("the old password is refused within the overlap: %d", w.Code)
	}
}
