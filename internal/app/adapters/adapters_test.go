package adapters

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/test/expect"
)

// Each provider of a stack has an adapter, and each one on shared servers can be opened.
func TestEachProviderHasAnAdapter(t *testing.T) {
	expect.Same(t, "providers", providers.Names(), slices.Sorted(maps.Keys(rows(""))))
	servers := providers.Servers()
	for name, r := range rows("") {
		if _, shared := servers[name]; shared != (r.open != nil) {
			t.Errorf("%s is on shared servers: %v; it is opened over some: %v", name, shared, r.open != nil)
		}
	}
}

// abilities are what programs find that a provider can do.
func abilities(w wired.Provider) map[string]bool {
	return map[string]bool{
		"inventory": w.Inventory != nil, "identifier": w.Identifier != nil, "refuser": w.Refuser != nil,
		"quarantiner": w.Quarantiner != nil, "adopter": w.Adopter != nil, "reconciler": w.Reconciler != nil,
	}
}

// A function outside of a VPC knows the abilities and the times of a provider on shared servers
// without its code: what it took for less would be left out of a sweep, or count as done.
func TestOutsideAProviderCanDoWhatItCanInside(t *testing.T) {
	outside := wired.Of(providers.Outside{})
	for name := range providers.Servers() {
		inside := Open(name, Options{})
		expect.Same(t, fmt.Sprintf("%s: abilities, inside and outside", name), abilities(inside), abilities(outside))
		if inside.CallTimeout != outside.CallTimeout || inside.Targets != nil {
			t.Errorf("%s has times, or targets, that a function outside does not know: %+v", name, inside)
		}
	}
}
