package osb

import (
	"net/http"
	"net/url"
	"testing"
)

// A poll's hint is what url.ParseQuery makes of the query, which parses all of it.
func TestHint(t *testing.T) {
	for _, query := range []string{
		"", "operation=a", "operation=a&operation=b", "plan_id=p&operation=a%2Fb+c", "%6Fperation=a", "operation", "operation=",
		"operation=%zz", "operation=%zz&operation=b", "a;b=1&operation=x", "operation=1;2&operation=3", "Operation=a",
		"&&operation=a&", "=x&operation=y", "%zz=1&operation=z",
	} {
		parsed, _ := url.ParseQuery(query)
		c := &call{Request: &http.Request{URL: &url.URL{RawQuery: query}}}
		if got, want := c.hint("operation"), parsed.Get("operation"); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}
