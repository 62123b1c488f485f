package ledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/longshore/longshore/internal/base/waiting"
)

// longestPause is the longest pause between two tries of Again.
const longestPause = 50 * time.Millisecond

// Again calls once until it meets no conflict or ctx ends; then it returns the last conflict.
// The pauses between two tries grow and are random, so that many writers of one record do not
// collide again at each try.
func Again(ctx context.Context, once func() error) error {
	for try := 0; ; try++ {
		err := once()
		if !errors.Is(err, ErrConflict) || waiting.For(ctx, rand.N(min(longestPause, time.Millisecond<<min(try, 6))+1)) != nil {
			return err
		}
	}
}
