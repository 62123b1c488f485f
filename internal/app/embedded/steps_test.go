package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// Ids that were never used before, a clock that is set back by five seconds, and
// deletions that must delete, now and after a restart.
func TestDeletionsAfterTheClockWasSetBack(t *testing.T) {
	var back atomic.Int64 // how far the machine's clock is set back
	settings := Settings{Data: t.TempDir(), wall: func() time.Time { return app.Now().Add(-time.Duration(back.Load())) }}
	e := opened(t, settings)
	defer func() { e.Close() }()
	for _, restarts := range []bool{false, true} {
		asked(t, e, "PUT", "i", demoOrder, http.StatusCreated)
		asked(t, e, "PUT", "i/service_bindings/b", demoOrder, http.StatusCreated)
		if restarts {
			e.Close()
			back.Store(0)
			e = opened(t, settings)
		}
		back.Store(int64(5 * time.Second))
		asked(t, e, "DELETE", "i/service_bindings/b"+ofDemosPlan, "", http.StatusOK)
		asked(t, e, "DELETE", "i"+ofDemosPlan, "", http.StatusOK)
		asked(t, e, "GET", "i", "", http.StatusNotFound)
	}
}

// Who may log in is decided by the machine's clock, by which the commands say until
// when: the broker's own goes on from a time that was wrong.
func TestAnOverlapEndsByTheMachinesClock(t *testing.T) {
	const user, old = "cf", "a-password-of-a-platform"
	settings := Settings{Data: t.TempDir(), Username: user, Password: old}
	settings.wall = func() time.Time { return app.Now().AddDate(1, 0, 0) }
	e := opened(t, settings)
	asked(t, e, "PUT", "i", demoOrder, http.StatusCreated)
	e.Close()
	settings.wall = nil
	opened(t, settings).Close()
	err := e.folder.Logins().Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		return r.Rotate(platforms.Default, platforms.NewPassword(), app.Now(), time.Hour)
	})
	expect.OK(t, err)
	e = opened(t, settings)
	defer e.Close()
	if e.folder.Behind < time.Hour {
		t.Fatalf("the clock is %v behind: the test proves nothing", e.folder.Behind)
	}
	e.Default.Username, e.Default.Password = user, old
	expect.Same(t, "the old password is answered within the overlap", http.StatusOK, answer(t, e, "GET", "catalog", "").Code)
}

// Where one provider cannot be opened, the server that another one has started ends.
func TestAFailedStartClosesWhatItHasOpened(t *testing.T) {
	opened, closed := 0, 0
	all := rows()
	all[app.ProviderMariaDB] = row{build: func(embedding) (wired.Provider, error) {
		opened++
		return wired.Provider{Provider: dumping{}, Close: func() { closed++ }}, nil
	}}
	dir := t.TempDir()
	f := expect.Get(folder.Open(dir, inputs))(t)
	defer f.Close()
	marker := filepath.Join(dir, "longshore.json") // which cannot be written any more
	expect.OK(t, errors.Join(os.Remove(marker), os.MkdirAll(filepath.Join(marker, "in the way"), 0o700)))
	if _, err := wiredIn(all, f, embedding{log: slog.New(slog.DiscardHandler)}); err == nil || opened != 1 || closed != 1 {
		t.Errorf("%d opened, %d closed: %v", opened, closed, err)
	}
}

// A broker that runs notices damage that no request has met, says what to do, and then changes nothing.
func TestDamageStopsChanges(t *testing.T) {
	dir := withInstances(t, "one")
	path := filepath.Join(dir, "longshore.db")
	raw := bytes.ReplaceAll(expect.Get(os.ReadFile(path))(t), []byte(`"state":"ready"`), []byte(`"state":"reedy"`))
	expect.OK(t, os.WriteFile(path, raw, 0o600))
	var log bytes.Buffer
	e := expect.Get(Open(Settings{Data: dir}, testkit.Demo(), slog.New(slog.NewTextHandler(&log, nil))))(t)
	defer e.Close()
	change := func(id string) error {
		return ledger.New(e.folder.Records, app.NewID).Commit(t.Context(),
			ledger.PutReport(ledger.Report{Started: app.Now(), Ended: app.Now()}, id))
	}
	expect.OK(t, change("1"), "before the check")
	e.CheckRecords(t.Context())
	expect.Says(t, "the log", log.String(), "level=ERROR", "refuses all changes", "restore the folder from a backup",
		"does not match its checksum")
	if change("2") == nil {
		t.Error("a change was made after the check")
	}
}

// A page has the provider asked in the background, and the next one shows what it told.
func TestAPageShowsFacts(t *testing.T) {
	e := begun(t, withInstances(t, "one"))
	defer e.Close()
	k := lifecycle.Key{Platform: e.Default.ID, Instance: "one"}
	table := datakey.New(ledger.New(e.folder.Records, app.NewID), e.folder.Vault)
	until := time.Now().Add(time.Minute)
	link := expect.Get(pages.Link{Scope: pages.ScopeOf(k), ID: "once", Until: until}.Seal(t.Context(), table))(t)
	form := url.Values{"link": {link}}.Encode()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/dashboard/enter", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	entered := httptest.NewRecorder()
	e.Handler.ServeHTTP(entered, r)
	look := func() string {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "GET", pages.InstancePath(k), nil)
		for _, c := range entered.Result().Cookies() {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		e.Handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("the page is answered %d:\n%s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	expect.Says(t, "the first page, which waits for no facts", look(), "Not known yet")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(look(), "of 16 kB"); {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the page has no facts:\n%s", look())
		}
	}
}

// The embedded broker holds a platform to the rate that its environment gives, and to none unless it gives one.
func TestTheRateOfAPlatformEmbedded(t *testing.T) {
	given := func(rate string) (Settings, error) {
		return Settings{Listen: ":0", Data: t.TempDir()}.Complete(func(name string) string {
			return map[string]string{app.EnvUsername: "u", app.EnvPassword: "a-long-password", app.EnvPlatformRate: rate}[name]
		})
	}
	for rate, want := range map[string]int{"": http.StatusOK, "0": http.StatusOK, "1": http.StatusTooManyRequests} {
		e := opened(t, expect.Get(given(rate))(t))
		last := 0
		for range 20 { // within a second, of which 1 lets two pass
			last = answer(t, e, "GET", "catalog", "").Code
		}
		e.Close()
		expect.Same(t, fmt.Sprintf("%s=%q: the last of 20 requests is answered", app.EnvPlatformRate, rate), want, last)
	}
	for _, rate := range []string{"-1", "1.5", "many", "100001"} {
		if _, err := given(rate); err == nil {
			t.Errorf("%s=%q is taken", app.EnvPlatformRate, rate)
		}
	}
}

// Links are made by adding a path to the origin, and developers see them.
func TestOriginsThatTakeAPath(t *testing.T) {
	for origin, taken := range map[string]bool{
		"": true, "https://broker.example.com": true, "http://localhost:8080": true, "https://example.com/broker/": true,
		"broker.example.com": false, "ftp://broker.example.com": false, "https://": false,
		"https://broker.example.com?a=b": false, "https://broker.example.com#a": false,
		"https://cf:hunter2@broker.example.com": false,
	} {
		_, err := Settings{Listen: ":0", Data: "d", Origin: origin}.Complete(func(string) string { return "" })
		expect.Same(t, fmt.Sprintf("%q is taken", origin), taken, err == nil)
	}
}

// While a backup holds all still, no step is under way, and none begins.
func TestABackupWaitsForStepsAndHoldsThemBack(t *testing.T) {
	q, under, done := new(quiet), atomic.Int32{}, atomic.Int32{}
	step := q.step(func(context.Context, workflow.Ref) (workflow.Outcome, error) {
		under.Add(1)
		runtime.Gosched()
		under.Add(-1)
		done.Add(1)
		return workflow.Outcome{}, nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				_, _ = step(t.Context(), workflow.Ref{})
			}
		})
	}
	for done.Load() < 8*500 {
		_ = q.hold(func() error {
			for range 10 {
				expect.Same(t, "steps under way while all is held still", 0, under.Load())
				runtime.Gosched()
			}
			return nil
		})
	}
	wg.Wait()
}
