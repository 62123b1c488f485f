package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// The prefixes of the logins that an instance's copies are made by: of what it is
// restored from, of itself while it is filled, and while it is saved. They are
// derived from that instance alone, so that its next step and its deletion find them,
// whatever became of whoever made them.
const (
	prefixReads  = "lscr"
	prefixFills  = "lscw"
	prefixSaves  = "lscb"
	stateFormat  = 1
	mostTries    = 5
	restoreAfter = time.Second
	evictAfter   = 200 * time.Millisecond
	// evictWithin is how long the end of a copy waits for its logins to be gone; what
	// is left then is removed by the next step.
	evictWithin = 20 * time.Second
)

// remembered is the state of an instance that is restored. Hazard: a database that was
// filled halfway looks like one that is whole. So what is in it counts only if the
// copy that this process has begun in this operation has come to its end; all else is
// dropped, and begun again.
type remembered struct {
	Operation string `json:"operation,omitempty"`
	Process   string `json:"process,omitempty"`
	Tries     int    `json:"tries,omitempty"`
}

func (r remembered) status(why string, after time.Duration) *provider.Status {
	raw, _ := json.Marshal(r) // texts and a number
	return &provider.Status{Percent: 5, Description: why, After: after, State: &provider.State{Format: stateFormat, Data: raw}}
}

// A copying is a copy on its way, or one that has ended.
type copying struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended
	bytes counter
}

// copied is a server as copies need it.
type copied struct{ *dialer }

// With implements pgcopy.Server.
func (c copied) With(ctx context.Context, work func(*pgx.Conn) error) error { return c.with(ctx, work) }

// Inside implements pgcopy.Server.
func (c copied) Inside(ctx context.Context, database string, work func(*pgx.Conn) error) error {
	return c.inside(ctx, database, work)
}

// sidesOf are the sides of what may copy for an instance: the login's side of a source
// has the source's database and owner.
func sidesOf(t provider.Tags, source *provider.Source) []pgcopy.Side {
	t.Binding = ""
	n := namesOf(t)
	reads := pgcopy.Side{Login: hosted.Name(prefixReads, t)}
	if source != nil {
		of := namesOf(source.Tags(t.Broker))
		reads.Database, reads.Owner = of.database, of.owner
	}
	return []pgcopy.Side{
		reads, {Database: n.database, Owner: n.owner, Login: hosted.Name(prefixFills, t)},
		{Database: n.database, Owner: n.owner, Login: hosted.Name(prefixSaves, t)},
	}
}

// endCopies has nothing be left of copies for an instance; unfinished says that
// something is.
func (p *Provider) endCopies(ctx context.Context, s *site, t provider.Tags, source *provider.Source) (*provider.Status, error) {
	sides := sidesOf(t, source)
	ended := p.copies.end(copyKey(t))
	if saved := p.copies.end(sides[2].Login); !ended || !saved {
		return &provider.Status{Percent: 50, Description: "Ending a copy", After: evictAfter}, nil
	}
	return s.evicted(ctx, sides)
}

// evicted has the logins of copies be gone; unfinished says that one is not.
func (s *site) evicted(ctx context.Context, sides []pgcopy.Side) (unfinished *provider.Status, _ error) {
	real, ok := s.server.(sqlServer)
	if !ok {
		return nil, nil // no copies are made on it
	}
	for _, side := range sides {
		gone, err := pgcopy.Evict(ctx, copied(real), side)
		if err != nil {
			return nil, s.Explain(err)
		}
		if !gone {
			unfinished = &provider.Status{Percent: 90, Description: "Ending a copy", After: evictAfter}
		}
	}
	return unfinished, nil
}

// copyKey is the instance that is filled, in this process.
func copyKey(t provider.Tags) string { return namesOf(t).database }

// restore is a step of a provision that fills the database from another instance's.
func (p *Provider) restore(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if p.programs == nil {
		return provider.Status{}, provider.Failf("A database cannot be restored from another one here: the broker has no pg_dump where it " +
			"runs. Order an empty one, and fill it by pg_dump and pg_restore with a binding of each.")
	}
	if in.Source.Retained != nil {
		return provider.Status{}, provider.Failf("Deleted databases are not retained here.")
	}
	if in.Source.Target != in.Target || in.Target.Identity == "" {
		return provider.Status{}, provider.Failf("The database to restore from is on another server. Order one on the same server.")
	}
	s, learnt, err := p.at(ctx, in)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer s.Leave()
	unfinished, err := p.restoreStep(ctx, s, in)
	return hosted.Settle(unfinished, err, provider.Status{})
}

// restoreStep begins the copy, looks at it, or begins it again; nothing is unfinished
// when it is done.
func (p *Provider) restoreStep(ctx context.Context, s *site, in provider.Instance) (*provider.Status, error) {
	var was remembered
	switch {
	case in.State.Format > stateFormat:
		return nil, errors.New("a later version of the broker has begun this: deploy it everywhere")
	case in.State.Format == stateFormat:
		_ = json.Unmarshal(in.State.Data, &was) // what cannot be read is begun again
	}
	if was.Operation != in.Operation.ID {
		was.Tries = 0
	}
	if was.Operation != in.Operation.ID || was.Process != p.process {
		return p.restoreAgain(ctx, s, in, was.Tries)
	}
	one := p.copies.get(copyKey(provider.TagsOf(in)))
	if one == nil {
		return p.fill(ctx, s, in)
	}
	select {
	case <-one.ended:
	default:
		return &provider.Status{Percent: 50, Description: "Restoring: " + one.bytes.text(), After: restoreAfter}, nil
	}
	if one.err != nil {
		return p.restoreFailed(ctx, one.err, was)
	}
	return s.evicted(ctx, sidesOf(provider.TagsOf(in), in.Source))
}

// restoreFailed is what becomes of a copy that failed.
func (p *Provider) restoreFailed(ctx context.Context, cause error, was remembered) (*provider.Status, error) {
	problem, known := errors.AsType[*pgcopy.Problem](cause)
	if was.Tries++; known && !problem.Passing || was.Tries >= mostTries {
		reason := "The server refused the copy."
		if known {
			reason = problem.Reason
		}
		p.log.WarnContext(ctx, "a database could not be restored from another one", "error", cause)
		return nil, provider.Failf("The database could not be restored. %s", reason)
	}
	was.Process = ""
	return was.status("Beginning again", restoreAfter), nil
}

// restoreAgain removes whatever stands, and remembers that it was removed.
func (p *Provider) restoreAgain(ctx context.Context, s *site, in provider.Instance, tries int) (*provider.Status, error) {
	t := provider.TagsOf(in)
	if err := p.checkSource(ctx, s, in); err != nil {
		return nil, err
	}
	if unfinished, err := p.endCopies(ctx, s, t, in.Source); err != nil || unfinished != nil {
		return unfinished, err
	}
	_, unfinished, err := s.run(ctx, namesOf(t), func(now standing) (decision, error) { return remove(t, now) })
	if err != nil || unfinished != nil {
		return unfinished, err
	}
	return remembered{in.Operation.ID, p.process, tries}.status("Preparing", time.Millisecond), nil
}

// fill makes the empty database, and begins to fill it.
func (p *Provider) fill(ctx context.Context, s *site, in provider.Instance) (*provider.Status, error) {
	if err := p.checkSource(ctx, s, in); err != nil {
		return nil, err
	}
	w, err := p.wanted(ctx, s, in)
	if err != nil {
		return nil, err
	}
	t := provider.TagsOf(in)
	if _, unfinished, err := s.run(ctx, namesOf(t), w.provision); err != nil || unfinished != nil {
		return unfinished, err
	}
	sides, access := sidesOf(t, in.Source), s.Access
	_, err = p.copies.begin(copyKey(t), func(ctx context.Context, one *copying) error { return p.copy(ctx, one, access, sides[0], sides[1]) })
	if errors.Is(err, errCopies) {
		return &provider.Status{Percent: 20, Description: "Waiting for other restores to end", After: restoreAfter}, nil
	}
	return &provider.Status{Percent: 20, Description: "Restoring", After: restoreAfter}, nil
}

// checkSource refuses a source that is not there, or does not fit. It changes nothing.
func (p *Provider) checkSource(ctx context.Context, s *site, in provider.Instance) error {
	m, err := settingsOf(in.Snapshot)
	if err != nil {
		return err
	}
	t := in.Source.Tags(in.Broker)
	n := namesOf(t)
	now, err := s.look(ctx, n)
	if err != nil {
		return s.Explain(err)
	}
	if _, err := usable(t, now); err != nil {
		return provider.Failf("The database to restore from is not there any more.")
	}
	real, ok := s.server.(sqlServer)
	if !ok {
		return nil
	}
	var version int
	var size int64
	err = real.with(ctx, func(c *pgx.Conn) error {
		version = major(c)
		return c.QueryRow(ctx, "SELECT pg_database_size($1)", n.database).Scan(&size)
	})
	var names []string
	if err == nil {
		err = real.inside(ctx, n.database, func(c *pgx.Conn) error {
			rows, err := c.Query(ctx, "SELECT extname::text FROM pg_extension")
			if err == nil {
				names, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
	}
	switch {
	case err != nil:
		return s.Explain(err)
	case version > p.programs.Major():
		return provider.Failf("A database cannot be restored from another one here: the broker's pg_dump is older than the server. " +
			"Ask the operator of the service to install the server's version.")
	case m.SizeWarning > 0 && size > int64(m.SizeWarning)<<20:
		return provider.Failf("The database to restore from has %d MB, and the plan is meant for %d MB. Order a larger plan.",
			size>>20, m.SizeWarning)
	}
	for _, name := range names {
		if name != "plpgsql" && !slices.Contains(m.Extensions, name) {
			return provider.Failf("The database to restore from has the extension %s, which the plan does not allow. It allows: %s.",
				name, list(m.Extensions))
		}
	}
	return nil
}

// copy fills one database with what is in another, each by a login of its own.
func (p *Provider) copy(ctx context.Context, one *copying, a hosted.Access, from, into pgcopy.Side) error {
	return p.withLogins(ctx, a, []pgcopy.Side{from, into}, func(logins []pgcopy.Login) error {
		out, in := io.Pipe()
		var first error
		var once sync.Once
		ended := func(err error) { once.Do(func() { first = err }) }
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.programs.Dump(ctx, a, logins[0], true, io.MultiWriter(in, &one.bytes))
			if err != nil {
				ended(err)
			}
			_ = in.CloseWithError(err)
		})
		err := p.programs.Restore(ctx, a, logins[1], out)
		if err != nil {
			ended(err)
		}
		_ = out.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		wg.Wait()
		return first
	})
}

// withLogins lets logins in for a copy, the first of them to read, and has them be
// gone after it.
func (p *Provider) withLogins(ctx context.Context, a hosted.Access, sides []pgcopy.Side, work func([]pgcopy.Login) error) error {
	d, err := newDialer(a, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), evictWithin)
		defer cancel()
		for _, side := range sides {
			for gone := false; !gone && ctx.Err() == nil; {
				if gone, err = pgcopy.Evict(ctx, copied{d}, side); err != nil {
					p.log.WarnContext(ctx, "a login of a copy is left; the next step removes it", "error", err)
					break
				}
			}
		}
	}()
	logins := make([]pgcopy.Login, len(sides))
	for i, side := range sides {
		if side.Join, err = p.joining(ctx, d, side); err != nil {
			return err
		}
		if logins[i], err = pgcopy.Admit(ctx, copied{d}, side, i == 0); err != nil {
			return err
		}
	}
	return work(logins)
}

// joining is how the keeper of a side's owner role is asked to have the login join it.
func (p *Provider) joining(ctx context.Context, d *dialer, side pgcopy.Side) (text string, err error) {
	err = d.with(ctx, func(c *pgx.Conn) error {
		w := work{ctx: ctx, c: c, names: names{broker: p.Broker}}
		text, _, err = w.ready([]line{{side.Owner, "GRANT %1$I TO %2$I WITH INHERIT TRUE, SET TRUE"}}, side.Owner, side.Login)
		return err
	})
	return text, err
}

// Dump writes what is in an instance, in pg_dump's custom format. Its errors say what
// to do.
func (p *Provider) Dump(ctx context.Context, in provider.Instance, to io.Writer) error {
	if p.programs == nil {
		return errors.New("the broker has found no pg_dump: install PostgreSQL's programs (`make postgres`) and start it again")
	}
	s, learnt, err := p.at(ctx, in)
	if err == nil && learnt != nil {
		err = noInstance()
	}
	if err != nil {
		return err
	}
	defer s.Leave()
	t := provider.TagsOf(in)
	now, err := s.look(ctx, namesOf(t))
	if err == nil {
		_, err = usable(t, now)
	}
	if err != nil {
		return err
	}
	side := sidesOf(t, nil)[2]
	one, err := p.copies.begin(side.Login, func(running context.Context, _ *copying) error {
		running, stop := context.WithCancel(running)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return p.withLogins(running, s.Access, []pgcopy.Side{side}, func(logins []pgcopy.Login) error {
			return p.programs.Dump(running, s.Access, logins[0], false, to)
		})
	})
	if err != nil {
		return err
	}
	<-one.ended
	p.copies.end(side.Login)
	return one.err
}

// A counter counts what is copied.
type counter struct {
	mu sync.Mutex
	n  int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += int64(len(b))
	return len(b), nil
}

func (c *counter) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%.1f MB copied", float64(c.n)/1e6)
}
