package pgcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// A Copier makes the copies of this process: it has their logins be there while they
// run, and gone when they end. Close it in the end.
type Copier struct {
	*Programs // nil where there are none, and nothing can be copied
	// Open reaches a server by the broker's login.
	Open func(hosted.Access) (Server, error)
	Log  *slog.Logger

	mu      sync.Mutex
	all     map[string]*Copy
	running int
	wg      sync.WaitGroup
}

// A Copy is on its way, or has ended.
type Copy struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended
	bytes atomic.Int64
}

// Ended reports whether the copy has come to its end, and how.
func (c *Copy) Ended() (bool, error) {
	select {
	case <-c.ended:
		return true, c.err
	default:
		return false, nil
	}
}

// Text says how much has been copied.
func (c *Copy) Text() string { return fmt.Sprintf("%.1f MB copied", float64(c.bytes.Load())/1e6) }

// Write implements io.Writer: it counts what is copied.
func (c *Copy) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return len(b), nil
}

// mostCopies bounds how many run at once: each has two programs and two sessions.
const mostCopies = 4

var (
	// ErrCopies: the next copy begins when another one has ended.
	ErrCopies = fmt.Errorf("%d databases are being copied already: wait until one of them is done", mostCopies)
	// errSaving: somebody has asked twice for one copy.
	errSaving = errors.New("this instance is being saved already: wait until that is done")
)

// evictWithin is how long the end of a copy waits for its logins to be gone; what
// is left then is the caller's to Evict.
const evictWithin = 20 * time.Second

// Fill begins to fill one database with what is in another, each by a login of its own;
// the side that is filled names the copy. ErrCopies says that others have to end first.
func (c *Copier) Fill(a hosted.Access, from, into Side) error {
	_, err := c.begin(into.Login, func(ctx context.Context, one *Copy) error {
		return c.withLogins(ctx, a, []Side{from, into}, func(logins []Login) error {
			return c.pipe(ctx, a, one, logins[0],
				logins[1])
		})
	})
	return err
}

// Save writes what is in a database, in pg_dump's custom format, and ends with it.
func (c *Copier) Save(ctx context.Context, a hosted.Access, side Side, to io.Writer) error {
	one, err := c.begin(side.Login, func(running context.Context, _ *Copy) error {
		running, stop := context.WithCancel(running)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return c.withLogins(running, a, []Side{side}, func(logins []Login) error {
			return c.Dump(running, a, logins[0], false,
				to)
		})
	})
	if err != nil {
		return err
	}
	<-one.ended
	c.End(side)
	return one.err
}

// pipe has one program read what the other one writes, and gives the error that was
// first: the other one follows from it.
func (c *Copier) pipe(ctx context.Context, a hosted.Access, one *Copy, from, into Login) error {
	out, in := io.Pipe()
	var first error
	var once sync.Once
	ended := func(err error) {
		if err != nil {
			once.Do(func() { first = err })
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		err := c.Dump(ctx, a, from, true, io.MultiWriter(in, one))
		ended(err)
		_ = in.CloseWithError(err)
	})
	err := c.Restore(ctx, a, into, out)
	ended(err)
	_ = out.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	wg.Wait()
	return first
}

// withLogins lets logins in for a copy, the first of them to read, and has them be
// gone after it.
func (c *Copier) withLogins(ctx context.Context, a hosted.Access, sides []Side, work func([]Login) error) error {
	s, err := c.Open(a)
	if err != nil {
		return err
	}
	defer s.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), evictWithin)
		defer cancel()
		for _, side := range sides {
			for gone := false; !gone && ctx.Err() == nil; {
				if gone, err = Evict(ctx, s, side); err != nil {
					c.Log.WarnContext(ctx, "a login of a copy is left; the next step removes it", "error", err)
					break
				}
			}
		}
	}()
	logins := make([]Login, len(sides))
	for i, side := range sides {
		if logins[i], err = Admit(ctx, s, side, i == 0); err != nil {
			return err
		}
	}
	return work(logins)
}

// Get gives the copy that a side names; nil if there is none in this process.
func (c *Copier) Get(side Side) *Copy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[side.Login]
}

// begin starts a copy, unless there is one of that name, or as many as there may be.
func (c *Copier) begin(name string, work func(context.Context, *Copy) error) (*Copy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[name] != nil {
		return nil, errSaving
	}
	if c.running == mostCopies {
		return nil, ErrCopies
	}
	c.running++
	ctx, stop := context.WithCancel(context.Background())
	one := &Copy{stop: stop, ended: make(chan struct{})}
	if c.all == nil {
		c.all = map[string]*Copy{}
	}
	c.all[name] = one
	c.wg.Go(func() {
		one.err = work(ctx, one)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		close(one.ended)
	})
	return one, nil
}

// End stops the copy that a side names and forgets it; it answers whether it has ended.
func (c *Copier) End(side Side) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[side.Login]
	if one == nil {
		return true
	}
	one.stop()
	ended, _ := one.Ended()
	if ended {
		delete(c.all, side.Login)
	}
	return ended
}

// Close stops all copies, and waits for them.
func (c *Copier) Close() {
	c.mu.Lock()
	for _, one := range c.all {
		one.stop()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
