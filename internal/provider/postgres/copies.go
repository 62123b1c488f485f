package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errSaving: a user of the provider has asked twice.
var errSaving = errors.New("this instance is being saved already: wait until that is done")

// copies are those of this process: of operations, and of instances that are saved.
type copies struct {
	mu      sync.Mutex
	all     map[string]*copying
	running int
	wg      sync.WaitGroup
}

func (c *copies) get(key string) *copying {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[key]
}

// mostCopies bounds how many run at once: each has two programs and two sessions.
const mostCopies = 4

// errCopies: the next copy begins when another one has ended.
var errCopies = fmt.Errorf("%d databases are being copied already: wait until one of them is done", mostCopies)

// begin starts a copy, unless there is one by that key, or as many as there may be.
func (c *copies) begin(key string, work func(context.Context, *copying) error) (*copying, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] != nil {
		return nil, errSaving
	}
	if c.running == mostCopies {
		return nil, errCopies
	}
	c.running++
	ctx, stop := context.WithCancel(context.Background())
	one := &copying{stop: stop, ended: make(chan struct{})}
	if c.all == nil {
		c.all = map[string]*copying{}
	}
	c.all[key] = one
	c.wg.Go(func() {
		one.err = work(ctx, one)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		close(one.ended)
	})
	return one, nil
}

// end stops a copy and forgets it; it answers whether it has ended.
func (c *copies) end(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[key]
	if one == nil {
		return true
	}
	one.stop()
	select {
	case <-one.ended:
		delete(c.all, key)
		return true
	default:
		return false
	}
}

// close stops all, and waits for them.
func (c *copies) close() {
	c.mu.Lock()
	for _, one := range c.all {
		one.stop()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
