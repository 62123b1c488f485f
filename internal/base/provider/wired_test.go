package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

type empty struct{ provider.Provider }

func (empty) List(context.Context, string) ([]provider.Holding, string, error) { return nil, "", nil }

// A provider may have no inventory, and its calls leave their function the
// time to record what they came to.
func TestCheckWired(t *testing.T) {
	const function = time.Minute
	for name, c := range map[string]struct {
		wired provider.Wired
		ok    bool
	}{
		"Default": {provider.Wired{Provider: empty{}, Inventory: empty{}}, true},
		"Longest": {provider.Wired{Provider: empty{}, Inventory: empty{}, CallTimeout: 45 * time.Second,
			Wait: provider.MaxWait}, true},
		"TooLong":     {provider.Wired{Provider: empty{}, Inventory: empty{}, CallTimeout: 46 * time.Second}, false},
		"WaitTooLong": {provider.Wired{Provider: empty{}, Inventory: empty{}, Wait: provider.MaxWait + 1}, false},
		"NoInventory": {provider.Wired{Provider: empty{}}, true},
		"NoEpochs":    {provider.Wired{Provider: empty{}, Epochs: true}, false},
		"NoProvider":  {provider.Wired{Inventory: empty{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := provider.CheckWired(map[string]provider.Wired{"p": c.wired}, function); (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}
