package main

import (
	"errors"
	"strings"
	"testing"
)

// Rights that do not fit into one policy are printed part by part, and never cut.
func TestRightsArePrintedInParts(t *testing.T) {
	one, two := [][]byte{[]byte("{1}")}, [][]byte{[]byte("{1}"), []byte("{2}")}
	for name, tc := range map[string]struct {
		reason   string
		policies [][]byte
		part     int
		want     string
	}{
		"One":      {"the only one needs no number", one, 0, "{1}"},
		"First":    {"it may have it", one, 1, "{1}"},
		"Second":   {"each is printed alone", two, 2, "{2}"},
		"All":      {"one policy of several is not all", two, 0, ""},
		"NoSuch":   {"there are two", two, 3, ""},
		"Negative": {"they begin with 1", one, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := printRights(&out, tc.policies, tc.part)
			_, refused := errors.AsType[*usageError](err)
			if strings.TrimSpace(out.String()) != tc.want || refused != (tc.want == "") {
				t.Errorf("%s: it prints %q, error %v; want %q", tc.reason, out.String(), err, tc.want)
			}
		})
	}
}
