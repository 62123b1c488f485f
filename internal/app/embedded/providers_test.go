package embedded

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app/providers"
)

// Both shapes have the same providers.
func TestTheEmbeddedBrokerHasEachProvider(t *testing.T) {
	if diff := cmp.Diff(providers.Names(), slices.Sorted(maps.Keys(rows()))); diff != "" {
		t.Errorf("providers, -want +got:\n%s", diff)
	}
}
