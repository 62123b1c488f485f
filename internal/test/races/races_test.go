package races_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

func asked(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q: give a number", variable, text)
	}
	return n
}

func seedOf(t *testing.T) int {
	t.Helper()
	seed := asked(t, "SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("run again with SEED=%d", seed)
	return seed
}

// A size says how much one history is, and of what; each group of it is checked
// by itself. Without a taste, the seed chooses one.
type size struct {
	clients, requests, groups int
	taste                     *taste
}

// run plays one history and gives what is wrong with it, and how long it is.
func run(t *testing.T, s store.Store, m mutant, seed int, z size) (wrong string, elements int) {
	t.Helper()
	c := newChronicle(newArena(t, s, m), z.groups)
	c.play(newPlot(uint64(seed), z))
	for _, h := range c.groups {
		elements += len(h.elements)
	}
	return c.verdict(t), elements
}

// budgets are what is run by default.
var budgets = map[string]struct {
	histories, atOnce int
	size
}{
	"Bolt":   {100, 4, size{clients: 5, requests: 10, groups: 2}},
	"Dynamo": {15, 4, size{clients: 5, requests: 10, groups: 2}},
}

// Everything that the model allows, at once, also while clocks are set (IDEM-01 to IDEM-09, CONC-01 to
// CONC-09).
func TestHistories(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, seed := budgets[name], seedOf(t)
			histories := asked(t, "HISTORIES", b.histories)
			began := time.Now()
			var next, elements atomic.Int64
			var all sync.WaitGroup
			for range min(b.atOnce, histories) {
				all.Go(func() {
					for n := int(next.Add(1)) - 1; n < histories; n = int(next.Add(1)) - 1 {
						t.Run(fmt.Sprintf("Seed%d", seed+n), func(t *testing.T) {
							wrong, length := run(t, open(t), mutant{}, seed+n, b.size)
							if elements.Add(int64(length)); wrong != "" {
								t.Errorf("SEED=%d HISTORIES=1 asks the same again\n%s", seed+n, wrong)
							}
						})
					}
				})
			}
			all.Wait()
			t.Logf("%d histories of %d elements in all, %v", histories, elements.Load(),
				time.Since(began).Round(time.Millisecond))
		})
	}
}
