package postgres

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
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// A copier runs the copies of this process, and lets their logins in for as long as they run. The caller must
// close it.
type copier struct {
	*pgcopy.Programs // nil if there are no programs: then nothing can be copied
	broker           string
	log              *slog.Logger

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

// evictWithin is how long the end of a copy waits for its logins to be removed. After that, the next step
// evicts those that are left.
const evictWithin = 20 * time.Second

// fill begins to fill one database from another, each side with a login of its own. It returns errCopies if
// others must end first.
func (c *copier) fill(a hosted.Access, from, into pgcopy.Side) error {
	_, err := c.begin(into.Login, func(ctx context.Context, one *copying) error {
		return c.withLogins(ctx, a, []pgcopy.Side{from, into}, func(logins []pgcopy.Login) error {
			return c.pipe(ctx, a, one, logins[0], logins[1])
		})
	})
	return err
}

// save writes the content of a database in pg_dump's custom format, and returns when that is done.
func (c *copier) save(ctx context.Context, a hosted.Access, side pgcopy.Side, to io.Writer) error {
	one, err := c.begin(side.Login, func(running context.Context, _ *copying) error {
		running, stop := context.WithCancel(running)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return c.withLogins(running, a, []pgcopy.Side{side}, func(logins []pgcopy.Login) error {
			return c.Dump(running, a, logins[0], false, to)
		})
	})
	if err != nil {
		return err
	}
	<-one.ended
	c.end(side)
	return one.err
}

// pipe feeds what pg_dump writes to pg_restore. If both fail, it returns the first error: the other one
// follows from it.
func (c *copier) pipe(ctx context.Context, a hosted.Access, one *copying, from, into pgcopy.Login) error {
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

// withLogins lets the logins of a copy in, the first of them to read only, and evicts them afterwards.
func (c *copier) withLogins(ctx context.Context, a hosted.Access, sides []pgcopy.Side, do func([]pgcopy.Login) error) error {
	d, err := openSQL(a, 0, c.log)
	if err != nil {
		return err
	}
	defer d.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), evictWithin)
		defer cancel()
		for _, side := range sides {
			for gone := false; !gone && ctx.Err() == nil; {
				if gone, err = evictCopy(ctx, d, side); err != nil {
					c.log.WarnContext(ctx, "a login of a copy is left; the next step removes it", "error", err)
					break
				}
			}
		}
	}()
	logins := make([]pgcopy.Login, len(sides))
	for i, side := range sides {
		if logins[i], err = admitCopy(ctx, d, c.broker, side, i == 0); err != nil {
			return err
		}
	}
	return do(logins)
}

// get returns the copy for the login of a side; nil if this process has none.
func (c *copier) get(side pgcopy.Side) *copying {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[side.Login]
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
func (c *copier) end(side pgcopy.Side) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[side.Login]
	if one == nil {
		return true
	}
	one.stop()
	ended, _ := one.hasEnded()
	if ended {
		delete(c.all, side.Login)
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
