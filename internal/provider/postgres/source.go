package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
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

// copied is a server as copies need it.
type copied struct {
	*dialer
	broker string
}

// copied opens a server for a copy.
func (p *Provider) copied(a hosted.Access) (pgcopy.Server, error) {
	d, err := newDialer(a, 0)
	return copied{d, p.Broker}, err
}

// With implements pgcopy.Server.
func (c copied) With(ctx context.Context, work func(*pgx.Conn) error) error { return c.with(ctx, work) }

// Inside implements pgcopy.Server.
func (c copied) Inside(ctx context.Context, database string, work func(*pgx.Conn) error) error {
	return c.inside(ctx, database, work)
}

// Join implements pgcopy.Server: the keeper of the owner role is asked to have the login
// join it.
func (c copied) Join(ctx context.Context, side pgcopy.Side) (text string, err error) {
	err = c.with(ctx, func(conn *pgx.Conn) error {
		w := work{ctx: ctx, c: conn, names: names{broker: c.broker}}
		text, _, err = w.ready([]line{{side.Owner, "GRANT %1$I TO %2$I WITH INHERIT TRUE, SET TRUE"}}, side.Owner, side.Login)
		return err
	})
	return text, err
}

// sidesOf are the sides of what may copy for an instance: the login's side of a source
// has the source's database and owner.
func sidesOf(t provider.Tags, source *provider.Source) []pgcopy.Side {
	t = t.OfInstance()
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
	ended := p.copier.End(sides[1])
	if saved := p.copier.End(sides[2]); !ended || !saved {
		return &provider.Status{Percent: 50, Description: "Ending a copy", After: evictAfter}, nil
	}
	return p.evicted(ctx, s, sides)
}

// evicted has the logins of copies be gone; unfinished says that one is not.
func (p *Provider) evicted(ctx context.Context, s *site, sides []pgcopy.Side) (unfinished *provider.Status, _ error) {
	real, ok := s.Server.(sqlServer)
	if !ok {
		return nil, nil // no copies are made on it
	}
	for _, side := range sides {
		gone, err := pgcopy.Evict(ctx, copied{dialer: real.dialer}, side)
		if err != nil {
			return nil, s.Explain(err)
		}
		if !gone {
			unfinished = &provider.Status{Percent: 90, Description: "Ending a copy", After: evictAfter}
		}
	}
	return unfinished, nil
}

// restore is a step of a provision that fills the database from another instance's: it
// begins the copy, looks at it, or begins it again; nothing is to wait for when it is done.
func (p *Provider) restore(ctx context.Context, s *site, in provider.Instance) (*provider.Status, error) {
	if p.copier.Programs == nil {
		return nil, provider.Failf("A database cannot be restored from another one here: the broker has no pg_dump where it " +
			"runs. Order an empty one, and fill it by pg_dump and pg_restore with a binding of each.")
	}
	if in.Source.Target != in.Target {
		return nil, provider.Failf("The database to restore from is on another server. Order one on the same server.")
	}
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
	sides := sidesOf(provider.TagsOf(in), in.Source)
	one := p.copier.Get(sides[1])
	if one == nil {
		return p.fill(ctx, s, in)
	}
	switch ended, err := one.Ended(); {
	case !ended:
		return &provider.Status{Percent: 50, Description: "Restoring: " + one.Text(), After: restoreAfter}, nil
	case err != nil:
		return p.restoreFailed(ctx, err, was)
	}
	return p.evicted(ctx, s, sides)
}

// restoreFailed is what becomes of a copy that failed.
func (p *Provider) restoreFailed(ctx context.Context, cause error, was remembered) (*provider.Status, error) {
	problem, known := errors.AsType[*pgcopy.Problem](cause)
	if was.Tries++; known && !problem.Passing || was.Tries >= mostTries {
		reason := "The server refused the copy."
		if known {
			reason = problem.Reason
		}
		p.Log.WarnContext(ctx, "a database could not be restored from another one", "error", cause)
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
	_, unfinished, err := s.Run(ctx, t, p.Own(t, remove))
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
	if _, unfinished, err := s.Run(ctx, t, p.Making(t, w.provision)); err != nil || unfinished != nil {
		return unfinished, err
	}
	sides := sidesOf(t, in.Source)
	if err = p.copier.Fill(s.Access, sides[0], sides[1]); errors.Is(err, pgcopy.ErrCopies) {
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
	now, err := s.Server.Look(ctx, t)
	if err != nil {
		return s.Explain(err)
	}
	if _, err := p.Using(t, whole)(now); err != nil {
		return provider.Failf("The database to restore from is not there any more.")
	}
	real, ok := s.Server.(sqlServer)
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
	case version > p.copier.Major():
		return provider.Failf("A database cannot be restored from another one here: the broker's pg_dump is older than the " +
			"server. " +
			"Ask the operator of the service to install the server's version.")
	case m.SizeWarning > 0 && size > int64(m.SizeWarning)<<20:
		return provider.Failf("The database to restore from has %d MB, and the plan is meant for %d MB. Order a larger plan.",
			size>>20, m.SizeWarning)
	}
	for _, name := range names {
		if name != "plpgsql" && !slices.Contains(m.Extensions, name) {
			return provider.Failf("The database to restore from has the extension %s, which the plan does not allow. It "+
				"allows: %s.",
				name, list(m.Extensions))
		}
	}
	return nil
}

// Dump writes what is in an instance, in pg_dump's custom format. Its errors say what
// to do.
func (p *Provider) Dump(ctx context.Context, in provider.Instance, to io.Writer) error {
	if p.copier.Programs == nil {
		return errors.New("the broker has found no pg_dump: install PostgreSQL's programs (`make postgres`) and start it again")
	}
	s, learnt, err := p.At(ctx, in.Target, in.Epoch)
	if err == nil && learnt != nil {
		err = hosted.NoInstance()
	}
	if err != nil {
		return err
	}
	defer s.Leave()
	t := provider.TagsOf(in)
	now, err := s.Server.Look(ctx, t)
	if err == nil {
		_, err = p.Using(t, whole)(now)
	}
	if err != nil {
		return err
	}
	return p.copier.Save(ctx, s.Access, sidesOf(t, nil)[2], to)
}
