package wired_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

type empty struct{ provider.Provider }

func (empty) List(context.Context, string) ([]provider.Holding, string, error) { return nil, "", nil }

type reconciler struct{ wired.Reconciler }

// A provider may have no inventory, and its calls leave their function the time to record what they came to.
func TestCheck(t *testing.T) {
	const function = time.Minute
	for name, c := range map[string]struct {
		wired wired.Provider
		ok    bool
	}{
		"Default":     {wired.Provider{Provider: empty{}, Inventory: empty{}}, true},
		"Longest":     {wired.Provider{Provider: empty{}, Inventory: empty{}, CallTimeout: 45 * time.Second}, true},
		"TooLong":     {wired.Provider{Provider: empty{}, Inventory: empty{}, CallTimeout: 46 * time.Second}, false},
		"NoInventory": {wired.Provider{Provider: empty{}}, true},
		"NoEpochs":    {wired.Provider{Provider: empty{}, Reconciler: reconciler{}}, false},
		"NoProvider":  {wired.Provider{Inventory: empty{}}, false},
		"Absent":      {wired.Absent(errors.New("no server")), true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := wired.Check(map[string]wired.Provider{"p": c.wired}, function); (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}
