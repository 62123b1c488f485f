package embedded

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/testkit"
)

// The embedded broker holds a platform to the rate that its environment gives,
// and to none unless it gives one.
func TestTheRateOfAPlatformEmbedded(t *testing.T) {
	for text, want := range map[string]int{"": http.StatusOK, "0": http.StatusOK, "1": http.StatusTooManyRequests} {
		settings, err := Settings{Listen: ":0", Data: t.TempDir()}.Complete(func(name string) string {
			return map[string]string{app.EnvUsername: "u", app.EnvPassword: "a-long-password", app.EnvPlatformRate: text}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(settings, testkit.Demo(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for range 20 { // within a second, of which 1 lets two pass
			r := httptest.NewRequest("GET", "/v2/catalog", nil)
			r.SetBasicAuth("u", "a-long-password")
			r.Header.Set("X-Broker-API-Version", "2.17")
			w := httptest.NewRecorder()
			e.Handler.ServeHTTP(w, r)
			last = w.Code
		}
		e.Close()
		if last != want {
			t.Errorf("%s=%q: the last of 20 requests is answered %d, want %d", app.EnvPlatformRate, text, last, want)
		}
	}
	for _, text := range []string{"-1", "1.5", "many", "100001"} {
		environment := map[string]string{app.EnvPlatformRate: text}
		_, err := Settings{Listen: ":0", Data: "d"}.Complete(func(name string) string { return environment[name] })
		if err == nil {
			t.Errorf("%s=%q is taken", app.EnvPlatformRate, text)
		}
	}
}
