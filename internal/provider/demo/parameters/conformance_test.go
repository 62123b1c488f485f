package parameters_test

import (
	"testing"

	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/demotest"
	"github.com/longshore/longshore/internal/provider/demo/parameters"
)

// The demo over parameters is a provider like others.
func TestConformance(t *testing.T) {
	demotest.Run(t, parameters.PageSize, func(t *testing.T) func(testing.TB) demo.Things {
		path := newPath(t)
		return func(t testing.TB) demo.Things { return open(t, path) }
	})
}
