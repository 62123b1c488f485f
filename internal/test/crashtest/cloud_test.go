package crashtest_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/crashtest"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
)

// In the first plan the cloud chooses the secrets, which takes two recorded steps.
var subject = crashtest.Subject{Name: "demo", Settings: map[string]any{"secret": "cloud"},
	Keeps: map[string]any{"retain_days": 1},
	Opens: func(p provider.Provider, g *provider.Grant) (bool, error) {
		return p.(*cloudtest.Provider).Cloud.Opens(g), nil
	},
	New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
		cloud := cloudtest.NewCloud(now)
		cloud.Effect = effect
		p := cloudtest.Demo(cloud, 3*time.Second)
		return p, p
	}}

// One goroutine at a time plays a history: on one processor, handing over to it wakes nobody.
func TestHistories(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	crashtest.Run(t, subject, 3000)
}

// Each safeguard would be missed.
func TestSafeguardsAreNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays histories until one goes wrong")
	}
	for _, g := range []crashtest.Safeguard{crashtest.Lease, crashtest.Fence, crashtest.Incarnation, crashtest.Tombstone,
		crashtest.Memory, crashtest.Owner, crashtest.FormerLease, crashtest.Transaction} {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			err := crashtest.Without(subject, g, 20000)
			if err == nil {
				t.Fatal("without it, nothing went wrong")
			}
			t.Log(err)
		})
	}
}
