package worker

import (
	"testing"
	"time"
)

// Looks are ten seconds apart at least, also when the clock has stepped back
// behind an operation's beginning.
func TestPausesAreNeverShort(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-2 * time.Hour: 10 * time.Second, 0: 10 * time.Second, 30 * time.Minute: 35 * time.Second, time.Hour: maxPause,
	} {
		if got := pause(age); got != want {
			t.Errorf("at an age of %v: %v, want %v", age, got, want)
		}
	}
}
