// Package expect says in one line what a test asks for: that nothing failed, or that a value is the wanted one.
package expect

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK ends the test at an error. The words, if there are any, name the call or the case.
func OK(t testing.TB, err error, words ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(words, err)...)
	}
}

// Get passes on the value of a call, and ends the test at its error: expect.Get(os.ReadFile(path))(t).
func Get[T any](got T, err error) func(t testing.TB, words ...any) T {
	return func(t testing.TB, words ...any) T {
		t.Helper()
		OK(t, err, words...)
		return got
	}
}

// Err returns the error of a call that returns a value, too.
func Err(_ any, err error) error { return err }

// Fails reports an error that is not of the wanted kind, and the test goes on. The text what names the call.
func Fails(t testing.TB, what string, want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// Same reports how a value differs from the wanted one, and the test goes on. The text what names the value.
func Same[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Least reports a count that is too small to prove anything, and the test goes on. The text what names what is counted.
func Least(t testing.TB, what string, least, got int) {
	t.Helper()
	if got < least {
		t.Errorf("%s: there are %d, want %d at least: the test proves nothing", what, got, least)
	}
}

// Says reports each part that a text lacks, and the test goes on.
func Says(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: want %q in:\n%s", what, part, text)
		}
	}
}

// Never reports each part that a text has and must not have, and the test goes on.
func Never(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: want no %q in:\n%s", what, part, text)
		}
	}
}
