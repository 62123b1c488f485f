package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// A copier knows the copies of this process. The caller must close it.
type copier struct {
	mu      sync.Mutex
	all     map[string]*copying // by the login that fills or saves
	running int
	wg      sync.WaitGroup
}

// A copying is a copy that runs, or has ended.
type copying struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended
	bytes atomic.Int64
}

// hasEnded reports whether the copy has ended, and with which error.
func (c *copying) hasEnded() (bool, error) {
	select {
	case <-c.ended:
		return true, c.err
	default:
		return false, nil
	}
}

// Write implements io.Writer: it counts what is copied.
func (c *copying) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return len(b), nil
}

// mostCopies bounds how many copies run at once: each has two programs and two sessions.
const mostCopies = 4

var (
	// errCopies says that the next copy can begin once another one has ended.
	errCopies = fmt.Errorf("%d databases are being copied already: wait until one of them is done", mostCopies)
	// errSaving says that the same copy runs already.
	errSaving = errors.New("this instance is being saved already: wait until that is done")
)

// evictWithin is how long a copy waits for its logins to be removed. At the end of a copy, the next step
// evicts those that are left.
const evictWithin = 20 * time.Second

// save writes the content of a database in pg_dump's custom format, and returns when that is done.
func (p *Provider) save(ctx context.Context, a hosted.Access, side names, to io.Writer) error {
	one, err := p.begin(a, func(running context.Context, _ *copying, logins []pgcopy.Login) error {
		return p.programs.Dump(running, a, logins[0], false, to)
	}, side)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, one.stop)()
	<-one.ended
	p.copier.end(side.login)
	return one.err
}

// pipe feeds what pg_dump writes to pg_restore. If both fail, it returns the first error: the other one
// follows from it.
func (p *Provider) pipe(ctx context.Context, a hosted.Access, one *copying, logins []pgcopy.Login) error {
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
		err := p.programs.Dump(ctx, a, logins[0], true, io.MultiWriter(in, one))
		ended(err)
		_ = in.CloseWithError(err)
	})
	err := p.programs.Restore(ctx, a, logins[1], out)
	ended(err)
	_ = out.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	wg.Wait()
	return first
}

// begin starts a copy with a login for each side, the first of them to read only. The logins can log in for
// as long as the copy runs. What a dead process has left of them is removed first.
func (p *Provider) begin(
	a hosted.Access, work func(context.Context, *copying, []pgcopy.Login) error, sides ...names,
) (*copying, error) {
	return p.copier.begin(sides[len(sides)-1].login, func(ctx context.Context, one *copying) error {
		d, err := openSQL(a, 0, p.Log)
		if err != nil {
			return err
		}
		defer d.Close()
		evict := func(ctx context.Context) (err error) {
			ctx, cancel := context.WithTimeout(ctx, evictWithin)
			defer cancel()
			for _, side := range sides {
				gone, failed := evictCopy(ctx, d, side)
				for !gone && failed == nil {
					if failed = waiting.For(ctx, evictAfter); failed == nil {
						gone, failed = evictCopy(ctx, d, side)
					}
				}
				err = errors.Join(err, failed)
			}
			return err
		}
		defer func() {
			if err := evict(context.WithoutCancel(ctx)); err != nil {
				p.Log.WarnContext(ctx, "a login of a copy is left; the next step removes it", "error", err)
			}
		}()
		if err := evict(ctx); err != nil {
			return err
		}
		logins := make([]pgcopy.Login, len(sides))
		for i, side := range sides {
			if logins[i], err = admitCopy(ctx, d, side, i == 0); err != nil {
				return err
			}
		}
		return work(ctx, one, logins)
	})
}

// get returns the copy of a login; nil if this process has none.
func (c *copier) get(login string) *copying {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[login]
}

// begin starts a copy, unless the same copy runs already, or the most copies that may run do.
func (c *copier) begin(login string, work func(context.Context, *copying) error) (*copying, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[login] != nil {
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
	c.all[login] = one
	c.wg.Go(func() {
		one.err = work(ctx, one)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		close(one.ended)
	})
	return one, nil
}

// end stops a copy, and reports whether it has ended. A copy that has ended is forgotten.
func (c *copier) end(login string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[login]
	if one == nil {
		return true
	}
	one.stop()
	ended, _ := one.hasEnded()
	if ended {
		delete(c.all, login)
	}
	return ended
}

// close stops all copies, and waits for them.
func (c *copier) close() {
	c.mu.Lock()
	for _, one := range c.all {
		one.stop()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
