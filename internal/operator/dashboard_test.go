package operator_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault/datakey"
)

// A link leads to the instance that was named, on the platform that has it, and the pages
// exchange it. Otherwise the refusal says what to name.
func TestDashboard(t *testing.T) {
	s := newSite(t)
	platforms := map[string]string{"one": "first", "two": "second"}
	s.console.Platforms = func(context.Context) (map[string]string, error) { return platforms, nil }
	for _, k := range []lifecycle.Key{{Platform: "one", Instance: "alone"}, {Platform: "one", Instance: "both"},
		{Platform: "two", Instance: "both"}} {
		if err := s.console.Records.Commit(t.Context(), ledger.Put(lifecycle.Record{Key: k,
			State: lifecycle.Ready})); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(v operator.Viewing, word string) {
		t.Helper()
		_, err := s.console.Dashboard(t.Context(), v)
		if refusal := (*operator.Refusal)(nil); !errors.As(err, &refusal) || !strings.Contains(refusal.Message, word) {
			t.Errorf("%+v: %v, want a refusal that says %q", v, err, word)
		}
	}
	refuses(operator.Viewing{ID: "alone"}, "longshore serve")
	s.console.Origin = "https://broker.example/prod/"
	opens := func(v operator.Viewing, platform string) {
		t.Helper()
		link, err := s.console.Dashboard(t.Context(), v)
		at, parsed := url.Parse(link.URL)
		if err != nil || parsed != nil || !strings.HasPrefix(link.URL, "https://broker.example/prod/dashboard/enter?") ||
			!link.Until.After(s.console.Now()) {
			t.Fatalf("%+v: %+v %v %v", v, link, err, parsed)
		}
		server := pages.New(pages.Options{
			Records: s.console.Records, Now: s.console.Now,
			Keys: &pages.Keys{Table: datakey.New(s.console.Records, s.console.Vault)},
		})
		form := strings.NewReader(url.Values{"link": {at.Query().Get("link")}}.Encode())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/dashboard/enter", form)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if want := pages.InstancePath(lifecycle.Key{Platform: platform, Instance: v.ID}); w.Header().Get("Location") != want {
			t.Errorf("%+v: the link is answered %d to %q, want %q", v, w.Code, w.Header().Get("Location"), want)
		}
	}
	opens(operator.Viewing{ID: "alone"}, "one")
	opens(operator.Viewing{ID: "both", Platform: "second"}, "two")
	refuses(operator.Viewing{ID: "both"}, "--platform")
	refuses(operator.Viewing{ID: "none"}, "longshore instances")
	refuses(operator.Viewing{ID: "alone", Platform: "third"}, "first, second")
	s.console.Platforms = func(context.Context) (map[string]string, error) { return nil, errors.New("no registry") }
	refuses(operator.Viewing{ID: "alone"}, "--platform")
	opens(operator.Viewing{ID: "alone", Platform: "one"}, "one")
}
