package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// The prefixes of the logins of an instance's copies: one reads the source that the instance is restored
// from, one fills the instance, and one saves it. The names of the logins derive from the instance alone, so
// that its next step and its deletion find them even if the process that made them has died.
const (
	prefixReads  = "lscr"
	prefixFills  = "lscw"
	prefixSaves  = "lscb"
	stateFormat  = 1
	mostTries    = 5
	restoreAfter = time.Second
	evictAfter   = 200 * time.Millisecond
)

// remembered is the state of an instance that is being restored. Hazard: a half-filled database looks like a
// complete one. So its content counts only if this process began the copy, in this operation, and the copy
// has ended; otherwise the database is dropped, and filled anew.
type remembered struct {
	Operation string `json:"operation,omitempty"`
	Process   string `json:"process,omitempty"`
	Tries     int    `json:"tries,omitempty"`
}

// later returns the Later that ends a step and has r remembered.
func (r remembered) later(why string, after time.Duration) error {
	raw, _ := json.Marshal(r) // texts and a number
	later := hosted.Wait(why, after)
	later.Status.Percent, later.Status.State = 5, &provider.State{Format: stateFormat, Data: raw}
	return later
}

// sidesOf returns the sides of all copies for an instance: reading its source, filling it, and saving it. If
// the source is not known, only the name of the login that reads it is right.
func sidesOf(t provider.Tags, source *provider.Source) [3]names {
	t = t.OfInstance()
	own := namesOf(t)
	sides := [3]names{own, own, own}
	if source != nil {
		sides[0] = namesOf(source.Tags(t.Broker))
	}
	for i, prefix := range []string{prefixReads, prefixFills, prefixSaves} {
		sides[i].login = hosted.Name(prefix, t)
	}
	return sides
}

// endCopies ends the copies for an instance, and evicts their logins.
func (p *Provider) endCopies(ctx context.Context, s *site, t provider.Tags, source *provider.Source) error {
	sides := sidesOf(t, source)
	filled := p.copier.end(sides[1].login)
	if saved := p.copier.end(sides[2].login); !filled || !saved {
		return hosted.Wait("Ending a copy", evictAfter)
	}
	return p.evicted(ctx, s, sides)
}

// evicted evicts the logins of copies.
func (p *Provider) evicted(ctx context.Context, s *site, sides [3]names) (unfinished error) {
	real, ok := s.Server.(*sqlServer)
	if !ok {
		return nil // a server in memory, on which no copies are made
	}
	for _, side := range sides {
		gone, err := evictCopy(ctx, real, side)
		if err != nil {
			return s.Explain(err)
		}
		if !gone {
			later := hosted.Wait("Ending a copy", evictAfter)
			later.Status.Percent = 90
			unfinished = later
		}
	}
	return unfinished
}

// restore is a step of a provision that fills the database from another instance's: it begins the copy, looks
// at its progress, or begins it again.
func (p *Provider) restore(ctx context.Context, s *site, in provider.Instance) error {
	if p.programs == nil {
		return provider.Failf("A database cannot be restored from another one here: the broker has no pg_dump where it " +
			"runs. Order an empty one, and fill it by pg_dump and pg_restore with a binding of each.")
	}
	if in.Source.Target != in.Target {
		return provider.Failf("The database to restore from is on another server. Order one on the same server.")
	}
	if in.State.Format > stateFormat {
		return errors.New("a later version of the broker has begun this: deploy it everywhere")
	}
	var was remembered
	_ = json.Unmarshal(in.State.Data, &was) // a copy without a state, or whose state cannot be read, is begun again
	if was.Operation != in.Operation.ID {
		was = remembered{Operation: in.Operation.ID}
	}
	sides := sidesOf(provider.TagsOf(in), in.Source)
	one, ours := p.copier.get(sides[1].login), was.Process == p.process
	if !ours || one == nil {
		switch err := p.checkSource(ctx, s, in); {
		case err != nil:
			if _, told := errors.AsType[*pgcopy.Problem](err); told {
				return p.restoreFailed(ctx, err, was)
			}
			return err
		case !ours:
			return p.restoreAgain(ctx, s, in, was)
		}
		return p.fill(ctx, s, in, sides)
	}
	switch ended, err := one.hasEnded(); {
	case !ended:
		return hosted.Wait(fmt.Sprintf("Restoring: %.1f MB copied", float64(one.bytes.Load())/1e6), restoreAfter)
	case err != nil:
		return p.restoreFailed(ctx, err, was)
	}
	return p.evicted(ctx, s, sides)
}

// restoreFailed fails the restore, or has it begin again if the failure may pass.
func (p *Provider) restoreFailed(ctx context.Context, cause error, was remembered) error {
	problem, known := errors.AsType[*pgcopy.Problem](cause)
	if was.Tries++; known && !problem.Passing || was.Tries >= mostTries {
		reason := "The server refused the copy."
		if known {
			reason = problem.Reason
		}
		p.Log.WarnContext(ctx, "a database could not be restored from another one", "error", cause)
		return provider.Failf("The database could not be restored. %s", reason)
	}
	was.Process = ""
	return was.later("Beginning again", restoreAfter)
}

// restoreAgain removes a database that stands, and remembers that this process has removed it.
func (p *Provider) restoreAgain(ctx context.Context, s *site, in provider.Instance, was remembered) error {
	t := provider.TagsOf(in)
	if err := p.endCopies(ctx, s, t, in.Source); err != nil {
		return err
	}
	if _, err := s.Run(ctx, t, hosted.Owned(t, hosted.Any, remove)); err != nil {
		return err
	}
	was.Process = p.process
	return was.later("Preparing", time.Millisecond)
}

// fill makes the empty database, and begins to fill it.
func (p *Provider) fill(ctx context.Context, s *site, in provider.Instance, sides [3]names) error {
	w, err := p.wanted(ctx, s, in)
	if err != nil {
		return err
	}
	t := provider.TagsOf(in)
	if _, err := s.Run(ctx, t, hosted.Owned(t, hosted.Free, w.provision)); err != nil {
		return err
	}
	later := hosted.Wait("Restoring", restoreAfter)
	later.Status.Percent = 20
	access := s.Access
	if _, err := p.begin(access, func(ctx context.Context, one *copying, logins []pgcopy.Login) error {
		return p.pipe(ctx, access, one, logins)
	}, sides[0], sides[1]); errors.Is(err, errCopies) {
		later.Status.Description = "Waiting for other restores to end"
	}
	return later
}

// checkSource refuses a source that is gone, or that the plan or the programs cannot handle. It changes
// nothing.
func (p *Provider) checkSource(ctx context.Context, s *site, in provider.Instance) error {
	m, err := settingsOf(in.Snapshot)
	if err != nil {
		return err
	}
	t := in.Source.Tags(in.Broker)
	now, err := s.Server.Look(ctx, t)
	if err != nil {
		return s.Explain(err)
	}
	if _, err := hosted.Owned(t, hosted.Used, whole)(now); err != nil {
		return provider.Failf("The database to restore from is not there any more.")
	}
	real, ok := s.Server.(*sqlServer)
	if !ok {
		return nil
	}
	var version int
	var size int64
	var extensions []string
	database := namesOf(t).database
	err = real.inside(ctx, database, func(c sqlSession) error {
		version = major(c)
		return c.row("SELECT pg_database_size(current_database()), ARRAY(SELECT extname::text FROM pg_extension)").
			Scan(&size, &extensions)
	})
	switch e, _ := errors.AsType[*pgconn.PgError](err); {
	case e != nil && classOf(e) == crowded && strings.Contains(e.Message, database): // the server itself would not name it
		return &pgcopy.Problem{
			Reason: "The database to restore from has no connection left. Close some, and try again.", Passing: true,
		}
	case err != nil:
		return s.Explain(err)
	case version > p.programs.Major:
		return provider.Failf("A database cannot be restored from another one here: the broker's pg_dump is older than the " +
			"server. Ask the operator of the service to install the server's version.")
	case m.SizeWarning > 0 && size > int64(m.SizeWarning)<<20:
		return provider.Failf("The database to restore from has %d MB, and the plan is meant for %d MB. Order a larger plan.",
			size>>20, m.SizeWarning)
	}
	for _, name := range extensions {
		if name != "plpgsql" && !slices.Contains(m.Extensions, name) {
			return provider.Failf("The database to restore from has the extension %s, which the plan does not allow. It "+
				"allows: %s.",
				name, list(m.Extensions))
		}
	}
	return nil
}

// Dump writes the content of an instance in pg_dump's custom format. Its errors say what to do.
func (p *Provider) Dump(ctx context.Context, in provider.Instance, to io.Writer) error {
	if p.programs == nil {
		return errors.New("the broker has found no pg_dump: install PostgreSQL's programs (`make postgres`) and start it again")
	}
	s, err := p.At(ctx, in.Target, in.Epoch)
	if _, unknown := errors.AsType[*hosted.Later](err); unknown {
		return hosted.NoInstance()
	}
	if err != nil {
		return err
	}
	defer s.Leave()
	t := provider.TagsOf(in)
	if _, err := s.Run(ctx, t, hosted.Owned(t, hosted.Used, whole)); err != nil {
		return err
	}
	return p.save(ctx, s.Access, sidesOf(t, nil)[2], to)
}
