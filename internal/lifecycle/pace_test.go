package lifecycle_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

func TestPace(t *testing.T) {
	var p lifecycle.Pace
	for _, step := range []struct {
		reason     string
		took, want time.Duration
	}{
		{"the first is all that is known", 10 * time.Second, 10 * time.Second},
		{"then it is the mean", 20 * time.Second, 15 * time.Second},
		{"of all", 30 * time.Second, 20 * time.Second},
	} {
		if p = p.With(step.took); p.Mean != step.want {
			t.Errorf("%s: %v, want %v", step.reason, p.Mean, step.want)
		}
	}
	// What changed for good is followed within some operations.
	for range 40 {
		p = p.With(100 * time.Second)
	}
	if p.Mean < 99*time.Second || p.Mean > 100*time.Second {
		t.Errorf("after forty of 100 s the mean is %v", p.Mean)
	}
	if p.Samples != 8 {
		t.Errorf("%d samples count, want 8", p.Samples)
	}
}
