package embedded

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// While a backup holds all still, no step is under way, and none begins.
func TestABackupWaitsForStepsAndHoldsThemBack(t *testing.T) {
	q, under, done := new(quiet), atomic.Int32{}, atomic.Int32{}
	step := q.step(func(context.Context, workflow.Ref) (workflow.Outcome, error) {
		under.Add(1)
		runtime.Gosched()
		under.Add(-1)
		done.Add(1)
		return workflow.Outcome{}, nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				_, _ = step(t.Context(), workflow.Ref{})
			}
		})
	}
	for done.Load() < 8*500 {
		_ = q.hold(func() error {
			for range 10 {
				if n := under.Load(); n != 0 {
					t.Errorf("%d steps are under way while all is held still", n)
				}
				runtime.Gosched()
			}
			return nil
		})
	}
	wg.Wait()
}
