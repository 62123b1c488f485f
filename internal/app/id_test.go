package app

import (
	"testing"
	"time"
	"unicode"

	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

func TestIDsBeginWithALetter(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := NewID()
		if len(id) != lifecycle.OperationIDLength || !unicode.IsLetter(rune(id[0])) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

// NFR-01: the longest wait that a provider may ask for ends, and is answered,
// before the API's function does, which ends before the gateway gives up.
func TestRequestsEndBeforeTheGatewayGivesUp(t *testing.T) {
	const (
		gateway  = 29 * time.Second
		answered = time.Second // before the function ends, see package gateway
	)
	if APITimeout >= gateway || wired.MaxWait > APITimeout-answered-broker.TimeToAnswer {
		t.Errorf("the function has %v, of which a request may wait %v", APITimeout, wired.MaxWait)
	}
	// The rest is for two reads and a write of the records.
	if left := broker.TimeToAnswer - workflow.HandOver; left < 2*time.Second {
		t.Errorf("after an operation is handed over, %v are left to answer", left)
	}
	for name, wait := range Waits {
		if wait <= 0 || wait > wired.MaxWait {
			t.Errorf("requests for %q wait %v", name, wait)
		}
	}
}
