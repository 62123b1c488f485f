// Package expect says in one line what a test asks for: that nothing failed, or that two values are the same.
package expect

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK ends the test at an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Err is the error of a call that gives a value too.
func Err(_ any, err error) error { return err }

// Fails reports an error that is not of the wanted kind, and the test goes on. The words say what fails.
func Fails(t testing.TB, want, got error, words string, args ...any) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", fmt.Sprintf(words, args...), got, want)
	}
}

// Same reports in what a value differs from what is wanted, and the test goes on. The words say what the value is.
func Same[T any](t testing.TB, want, got T, words string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprintf(words, args...), diff)
	}
}
