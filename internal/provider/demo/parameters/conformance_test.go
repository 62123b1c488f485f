package parameters_test

import (
	"testing"

	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/parameters"
	"github.com/longshore/longshore/internal/test/demotest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The demo over parameters is a provider like others. That every call may go
// wrong, and that it works synchronously, is proved over the fake.
func TestConformance(t *testing.T) {
	providertest.RunOnce(t, demotest.Factory(parameters.PageSize, "cloud", func(t *testing.T) func(testing.TB) demo.Things {
		path := newPath(t)
		return func(t testing.TB) demo.Things { return open(t, path) }
	}), "Faults", "LateCalls")
}
