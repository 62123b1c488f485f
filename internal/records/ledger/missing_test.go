package ledger_test

import (
	"context"
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/memory"
)

// lacking gives its listings beside an error, as a store does that left a record out.
type lacking struct{ store.Store }

func (l lacking) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	page, err := l.Store.List(ctx, partition, prefix, after, limit)
	return page, errors.Join(err, store.ErrUnreadable)
}

// A deprovision stops where a listing has left a record out: the binding that is not listed
// would be left behind.
func TestADecisionStopsWhereARecordWasLeftOut(t *testing.T) {
	l := ledger.New(lacking{memory.New()}, func() string { return "w" })
	next, _, err := l.NextBinding(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, "")
	if next != nil || !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("the next binding is %+v: %v", next, err)
	}
	use, err := l.NextTargetUse(t.Context(), lifecycle.TargetUse{}, false)
	if use != nil || !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("the next use of a target is %+v: %v", use, err)
	}
}
