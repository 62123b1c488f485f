package rates_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/rates"
)

func TestEachPlatformHasItsOwn(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	l := rates.New(5, func() time.Time { return now })
	passed := func(platform string, tries int) (n int) {
		for range tries {
			if l.Take(platform) == 0 {
				n++
			}
		}
		return n
	}
	if n := passed("greedy", 1000); n != 10 {
		t.Errorf("%d of 1000 at once pass, want the 10 of two seconds", n)
	}
	if n := passed("other", 10); n != 10 {
		t.Errorf("beside it, %d of 10 pass", n)
	}
	if wait := l.Take("greedy"); wait != 200*time.Millisecond {
		t.Errorf("there is room in %v, want 200ms", wait)
	}
	now = now.Add(200 * time.Millisecond)
	if n := passed("greedy", 10); n != 1 {
		t.Errorf("after a fifth of a second %d pass, want 1: what was refused is not counted", n)
	}
	now = now.Add(time.Hour)
	if n := passed("greedy", 1000); n != 10 {
		t.Errorf("after an hour %d pass at once, want 10", n)
	}
}

func TestNoLimit(t *testing.T) {
	l := rates.New(0, time.Now)
	for range 1000 {
		if wait := l.Take("p"); wait != 0 {
			t.Fatalf("held up for %v", wait)
		}
	}
}
