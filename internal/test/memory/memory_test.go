package memory_test

import (
	"testing"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) *storetest.Harness {
		m := memory.New()
		return &storetest.Harness{Store: m, Again: func(*testing.T) store.Store { return m }, Ordered: true}
	})
}
