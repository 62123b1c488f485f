package rates_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/test/expect"
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
	expect.Same(t, "of 1000 at once pass", 10, passed("greedy", 1000))
	expect.Same(t, "of 10 beside it pass", 10, passed("other", 10))
	expect.Same(t, "there is room in", 200*time.Millisecond, l.Take("greedy"))
	now = now.Add(200 * time.Millisecond)
	expect.Same(t, "after a fifth of a second, what was refused being not counted, pass", 1, passed("greedy", 10))
	now = now.Add(time.Hour)
	expect.Same(t, "after an hour pass at once", 10, passed("greedy", 1000))
	l = rates.New(0, time.Now)
	expect.Same(t, "of 1000 at once pass without a limit", 1000, passed("p", 1000))
}
