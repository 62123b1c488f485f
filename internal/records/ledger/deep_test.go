package ledger_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A record that could not be read again is refused, whatever is nested in it.
func TestWhatIsNestedTooDeeplyIsRefused(t *testing.T) {
	for depth, refused := range map[int]bool{900: false, 5000: false, 9_990: false, 9_999: true} {
		l := over(newStore(t))
		r := lifecycle.Record{Key: instance, Attributes: lifecycle.Attributes{
			Context: json.RawMessage(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)}}
		err := l.Commit(context.Background(), ledger.Put(r))
		if refused != (err != nil) {
			t.Errorf("depth %d: %v, refused is to be %t", depth, err, refused)
		}
	}
}
