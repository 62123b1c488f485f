package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/records/ledger"
)

// Conflicts are met again and again until none is met, another error comes, or
// the time is over.
func TestAgain(t *testing.T) {
	conflict, broken := fmt.Errorf("committing: %w", ledger.ErrConflict), errors.New("broken")
	tests := map[string]struct {
		reason string
		meets  []error // one at each try; the last for good
		ends   int     // the time is over in this try; 0 for never
		want   error
		tries  int
	}{
		"Once":      {"no conflict, no repetition", []error{nil}, 0, nil, 1},
		"Conflicts": {"as often as there is one", []error{conflict, conflict, conflict, nil}, 0, nil, 4},
		"Error":     {"what is no conflict is final", []error{conflict, broken}, 0, broken, 2},
		"Over":      {"the last conflict is told", []error{conflict}, 3, ledger.ErrConflict, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			tries := 0
			err := ledger.Again(ctx, func(context.Context) error {
				tries++
				if tries == tc.ends {
					cancel()
				}
				return tc.meets[min(tries, len(tc.meets))-1]
			})
			if !errors.Is(err, tc.want) || tries != tc.tries {
				t.Errorf("%s: %v after %d tries, want %v after %d", tc.reason, err, tries, tc.want, tc.tries)
			}
			cancel()
		})
	}
}
