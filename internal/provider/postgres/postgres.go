// Package postgres makes databases on a PostgreSQL server that many share: for an
// instance a database and a role that owns what is in it, for a binding a login
// that works as that role. It decides what comes next (next.go) from what stands on
// the server (server.go), and leaves the statements to one file (statements.go).
// How the server is reached, and by whom it was started, is its caller's.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// Options are what a Provider is made with.
type Options struct {
	// Broker is the broker's identity.
	Broker string
	// Accesses are today's targets.
	Accesses hosted.Accesses
	Now      func() time.Time
	// Log is told what an operator has to know; nil for nothing.
	Log *slog.Logger
	// Pool is how many connections are kept for the steps to come; 0 to close each
	// with its step, as a function does that may be frozen after it.
	Pool int
	// Programs copy databases; nil where there are none, and nothing is restored from
	// another database or saved.
	Programs *pgcopy.Programs
}

// pageSize is how much a page of the inventory holds.
const pageSize = 200

// A Provider is the adapter. That it reaches and surveys servers is what it has in common
// with others.
type Provider struct {
	hosted.Servers[server]
	now  func() time.Time
	log  *slog.Logger
	page int

	process string // whose copies are on their way
	copier  pgcopy.Copier
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
	_ provider.Retainer    = (*Provider)(nil)
	_ provider.Reconciler  = (*Provider)(nil)
)

// New makes a provider. It reaches no server yet. Close it in the end.
func New(o Options) *Provider {
	p := &Provider{
		Servers: hosted.Servers[server]{Broker: o.Broker, Accesses: o.Accesses, Pool: o.Pool, Open: openSQL},
		now:     o.Now, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), page: pageSize, process: rand.Text(),
	}
	p.copier.Programs, p.copier.Open, p.copier.Log = o.Programs, p.copied, p.log
	p.Explain = p.explain
	return p
}

// Close ends the copies on their way and the connections that are kept.
func (p *Provider) Close() {
	p.copier.Close()
	p.Servers.Close()
}

// A site is a server whose identity and epoch are proven, in one step.
type site struct {
	server
	*hosted.Site[server]
	log *slog.Logger
}

// at reaches the server that an instance is on.
func (p *Provider) at(ctx context.Context, in provider.Instance) (*site, *provider.Status, error) {
	at, learnt, err := p.At(ctx, in.Target, in.Epoch)
	if err != nil || learnt != nil {
		return nil, learnt, err
	}
	if real, ok := at.Server.(sqlServer); ok {
		real.keepWarm(ctx, in.Target.Identity)
	}
	return &site{at.Server, at, p.log}, nil, nil
}

// goOnAfter is the pause of a step that has come forward, and has more to do.
const goOnAfter = 500 * time.Millisecond

// maxActs is how many changes one step makes at most.
const maxActs = 12

// A decision is what follows from what stands: an act, a pause with why, or
// neither when all is done.
type decision struct {
	act   act
	pause time.Duration
	why   string
}

// run looks and acts until there is nothing to do. Whoever else works at the same
// thing is met with another look.
func (s *site) run(ctx context.Context, n names, next func(standing) (decision, error)) (standing, *provider.Status, error) {
	var busy error
	var last any
	for range maxActs {
		now, err := s.look(ctx, n)
		if err != nil {
			return now, nil, s.Explain(err)
		}
		d, err := next(now)
		switch {
		case err != nil:
			return now, nil, err
		case d.pause > 0:
			return now, &provider.Status{Percent: 50, Description: d.why, After: d.pause}, nil
		case d.act == nil:
			return now, nil, nil
		}
		this := struct {
			act
			standing
		}{d.act, now}
		if busy == nil && reflect.DeepEqual(last, this) {
			return now, &provider.Status{Percent: 50, Description: "Waiting for others to let go of it", After: time.Second}, nil
		}
		last, busy = this, nil
		err = s.do(ctx, n, now, d.act)
		if rest, is := errors.AsType[*left](err); is {
			s.log.WarnContext(ctx, "roles are locked and stay: they have something in a database that the broker may not enter. "+
				"Run DROP OWNED BY them there, and DROP ROLE", "roles", rest.names, "were", rest.roles, "databases", rest.databases)
			continue
		}
		switch {
		case err == nil:
		case errors.Is(err, errChanged) || meaningOf(err) == meansBusy:
			busy = err
		case errors.Is(err, errGoesOn):
			return now, &provider.Status{Percent: 50, Description: "Working", After: goOnAfter}, nil
		default:
			return now, nil, s.Explain(err)
		}
	}
	return standing{}, &provider.Status{Percent: 50, Description: "Working", After: time.Second}, s.Explain(busy)
}

// instance is a step of an instance.
func (p *Provider) instance(
	ctx context.Context, in provider.Instance, work func(*site, names) (*provider.Status, error),
) (provider.Status, error) {
	s, learnt, err := p.at(ctx, in)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer s.Leave()
	unfinished, err := work(s, namesOf(provider.TagsOf(in)))
	return hosted.Settle(unfinished, err, provider.Status{})
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if in.Source != nil && in.Source.Retained == nil {
		return p.restore(ctx, in)
	}
	return p.instance(ctx, in, func(s *site, n names) (*provider.Status, error) {
		w, err := p.wanted(ctx, s, in)
		if err != nil {
			return nil, err
		}
		next := w.provision
		if from := in.Source; from != nil && from.Retained != nil {
			w.keptUntil = from.Retained.Until
			next = w.move(ctx, s, from.Tags(in.Broker))
		}
		_, unfinished, err := s.run(ctx, n, next)
		return unfinished, err
	})
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, in, func(s *site, n names) (*provider.Status, error) {
		w, err := p.wanted(ctx, s, in)
		if err != nil {
			return nil, unchanged(err)
		}
		if err := w.movable(in.Former); err != nil {
			return nil, unchanged(err)
		}
		_, unfinished, err := s.run(ctx, n, w.update)
		return unfinished, unchanged(err)
	})
}

// unchanged says of a failed update that the instance is as it was, and that
// another update may be tried.
func unchanged(err error) error {
	if f, ok := errors.AsType[*provider.Failure](err); ok {
		yes := true
		f.InstanceUsable, f.UpdateRepeatable = &yes, &yes
	}
	return err
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	var kept *provider.Retained
	st, err := p.instance(ctx, in, func(s *site, n names) (unfinished *provider.Status, err error) {
		if unfinished, err = p.endCopies(ctx, s, provider.TagsOf(in), nil); err != nil || unfinished != nil {
			return unfinished, err
		}
		unfinished, kept, err = p.deprovision(ctx, s, n, in)
		return unfinished, err
	})
	st.Retained = kept
	return st, err
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	s, learnt, err := p.at(ctx, b.Instance)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer s.Leave()
	w, err := p.wantedBinding(b)
	if err != nil {
		return provider.Status{}, err
	}
	n := namesOf(provider.BindingTagsOf(b))
	now, unfinished, err := s.run(ctx, n, w.bind)
	if err != nil || unfinished != nil {
		return hosted.Settle(unfinished, err, provider.Status{})
	}
	return hosted.Settle(nil, nil, provider.Status{Grant: w.grant(s.Access, n), Description: p.warn(ctx, s, n, now)})
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	for range rescues {
		if st, err = p.unbind(ctx, b); err == nil || !p.rescued(ctx, b, err) {
			break
		}
	}
	return st, err
}

func (p *Provider) unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	s, learnt, err := p.at(ctx, b.Instance)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer s.Leave()
	tags := provider.BindingTagsOf(b)
	goes, err := dropped(b.Instance)
	if err != nil {
		return provider.Status{}, err
	}
	_, unfinished, err := s.run(ctx, namesOf(tags), func(now standing) (decision, error) {
		d, err := unbind(tags, now)
		if _, empties := d.act.(emptyLogin); !goes || !empties || !now.database.exists() {
			return d, err
		}
		if unfinished, err := p.endCopies(ctx, s, provider.TagsOf(b.Instance), nil); err != nil || unfinished != nil {
			return pausing(unfinished), err
		}
		return remove(tags.OfInstance(), now)
	})
	return hosted.Settle(unfinished, err, provider.Status{})
}

// dropped reports whether the instance of a binding is being deleted and its database
// dropped. It is dropped first then: what the binding has made in it need not be handed
// over, which would take long, or wait for locks.
func dropped(in provider.Instance) (bool, error) {
	m, err := settingsOf(in.Snapshot)
	return in.Operation.Kind == provider.KindDeprovision && m.RetainDays == 0, err
}

// pausing is the decision to wait for what is unfinished.
func pausing(unfinished *provider.Status) decision {
	if unfinished == nil {
		return decision{}
	}
	return decision{pause: unfinished.After, why: unfinished.Description}
}
