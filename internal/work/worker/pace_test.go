package worker

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// Looks are ten seconds apart at least, also when the clock has stepped back behind an operation's beginning.
func TestPausesAreNeverShort(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-2 * time.Hour: 10 * time.Second, 0: 10 * time.Second, 30 * time.Minute: 35 * time.Second, time.Hour: maxPause,
	} {
		expect.Same(t, fmt.Sprintf("at an age of %v", age), want, pause(age))
	}
}

func TestFaultsAreRepeatedLessAndLessOften(t *testing.T) {
	for faults, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 7: time.Minute} {
		expect.Same(t, fmt.Sprintf("after %d faults before", faults), want, backoff(io.EOF, faults))
	}
}

func TestALeaseIsNotLookedAtAllTheTime(t *testing.T) {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	op := &lifecycle.Operation{Started: began}
	for age, want := range map[time.Duration]time.Duration{-time.Hour: time.Second, 0: raceWait, 4 * time.Second: 2 * time.Second,
		time.Hour: maxLeasePause} {
		now := began.Add(age)
		expect.Same(t, fmt.Sprintf("at an age of %v", age), want, leasePause(op, now.Add(time.Minute), now))
	}
}
