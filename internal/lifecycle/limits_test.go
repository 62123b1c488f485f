package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A provider's text is shown to people and kept in a record. The record clips a long one
// between two characters, whatever its source.
func TestDescriptionsAreClipped(t *testing.T) {
	long := "a" + strings.Repeat("ü", 20_000)
	i, _, err := lifecycle.Record{Key: instanceKey}.BeginCreate(start("op", epoch),
		lifecycle.Record{Provider: "provider", Attributes: attributes("small")})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := lifecycle.Record{Key: bindingKey}.BeginCreate(start("op", epoch), bound("small"))
	if err != nil {
		t.Fatal(err)
	}
	failure := lifecycle.Failure{Message: long}
	for name, of := range map[string]func() (lifecycle.Record, error){
		"Progress": func() (lifecycle.Record, error) { return i.Looked(at(1), lifecycle.Look{Description: long}), nil },
		"Trouble": func() (lifecycle.Record, error) {
			return i.Faulted(at(1), lifecycle.Fault{Trouble: long, Description: long}), nil
		},
		"InstanceFailure": func() (lifecycle.Record, error) { next, err := i.Fail(at(1), failure); return next, err },
		"BindingFailure":  func() (lifecycle.Record, error) { next, err := b.Fail(at(1), failure); return next, err },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := of()
			if err != nil {
				t.Fatal(err)
			}
			got := c.Operation.Description
			if len(got) > limits.Description || len(got) < limits.Description-4 || !utf8.ValidString(got) || !strings.HasPrefix(got, "aüü") ||
				!strings.HasSuffix(got, "ü…") {
				t.Errorf("%d bytes, valid %v, end %q", len(got), utf8.ValidString(got), got[max(0, len(got)-8):])
			}
		})
	}
}

// However many calls are lost on their way, a record keeps few leases, and no
// operation that overtakes them waits less than it would for all.
func TestLeasesAreFew(t *testing.T) {
	c := lifecycle.Record{Operation: &lifecycle.Operation{ID: "op", Kind: lifecycle.Provision, Phase: lifecycle.InProgress}}
	for n := range 5 * limits.Leases {
		until := 1000 + n
		if n == 3 {
			until = 9000 // the longest is among those that are merged
		}
		c = c.Leased(fmt.Sprintf("step-%d", n), sec(n), sec(until), nil)
		if len(c.Leases) > limits.Leases {
			t.Fatalf("%d leases after %d calls", len(c.Leases), n+1)
		}
		if !c.Holds(fmt.Sprintf("step-%d", n)) {
			t.Fatalf("step %d does not hold its own lease", n)
		}
	}
	if until := c.Busy("other", sec(100), nil); !until.Equal(sec(9000)) {
		t.Errorf("another operation waits until %v, not until the longest lease has run out", until)
	}
	if until := c.Busy("op", sec(100), nil); !until.Equal(sec(9000)) {
		t.Errorf("the operation itself waits until %v for what is its own", until)
	}
	// No step gives a merged lease up: one of its calls may go on.
	for n := range 5 * limits.Leases {
		c = c.Released(fmt.Sprintf("step-%d", n))
	}
	if c = c.Released(""); len(c.Leases) != 1 || !c.Busy("other", sec(100), nil).Equal(sec(9000)) {
		t.Errorf("after all steps gave theirs up: %v", c.Leases)
	}
	if !c.Unsure("other", sec(9000), nil) {
		t.Error("when it has run out, a call may have been lost, and one look proves nothing")
	}
}

func TestMergedLeasesOfTwoOperationsBelongToNeither(t *testing.T) {
	c := lifecycle.Record{Operation: &lifecycle.Operation{ID: "op", Kind: lifecycle.Deprovision, Phase: lifecycle.InProgress}}
	c.Leases = []lifecycle.Lease{lease("a", "other", 0, 500)}
	for n := range limits.Leases {
		c = c.Leased(fmt.Sprintf("step-%d", n), sec(n), sec(400), nil)
	}
	if until := c.Busy("op", sec(100), nil); !until.Equal(sec(500)) {
		t.Errorf("the operation waits until %v, not for the call of the other", until)
	}
}
