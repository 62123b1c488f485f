package embedded

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault/datakey"
)

// A page has the provider asked in the background, and the next one shows what it told.
func TestAPageShowsFacts(t *testing.T) {
	e := begun(t, withInstances(t, "one"))
	defer e.Close()
	k := lifecycle.Key{Platform: e.Default.ID, Instance: "one"}
	keys := &pages.Keys{Table: datakey.New(ledger.New(e.folder.Records, app.NewID), e.folder.Vault)}
	link, err := keys.Link(t.Context(), pages.Link{Scope: pages.ScopeOf(k), ID: "once", Until: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
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
	if page := look(); !strings.Contains(page, "Not known yet") {
		t.Errorf("the first page waits for facts:\n%s", page)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(look(), "of 16 kB"); {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the page has no facts:\n%s", look())
		}
	}
}
