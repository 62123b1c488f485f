package pgcopy

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// However many restores are asked for at once, some run and the others wait for them.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	var c Copier
	t.Cleanup(c.Close)
	until := func(ctx context.Context, _ *Copy) error { <-ctx.Done(); return ctx.Err() }
	for n := range mostCopies {
		if _, err := c.begin(fmt.Sprint(n), until); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.begin("0", until); !errors.Is(err, errSaving) {
		t.Errorf("the same copy twice: %v", err)
	}
	if _, err := c.begin("more", until); !errors.Is(err, ErrCopies) {
		t.Errorf("one more: %v", err)
	}
	first := c.Get(Side{Login: "0"})
	c.End(Side{Login: "0"})
	<-first.ended
	if _, err := c.begin("more", until); err != nil {
		t.Errorf("one more, after another has ended: %v", err)
	}
}
