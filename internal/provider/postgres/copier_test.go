package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/expect"
)

// However many restores are asked for at once, some run and the others wait for them.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	var c copier
	t.Cleanup(c.close)
	until := func(ctx context.Context, _ *copying) error { <-ctx.Done(); return ctx.Err() }
	for n := range mostCopies {
		expect.Get(c.begin(fmt.Sprint(n), until))(t)
	}
	if _, err := c.begin("0", until); !errors.Is(err, errSaving) {
		t.Errorf("the same copy twice: %v", err)
	}
	if _, err := c.begin("more", until); !errors.Is(err, errCopies) {
		t.Errorf("one more: %v", err)
	}
	first := c.get(pgcopy.Side{Login: "0"})
	c.end(pgcopy.Side{Login: "0"})
	<-first.ended
	if _, err := c.begin("more", until); err != nil {
		t.Errorf("one more, after another has ended: %v", err)
	}
}
