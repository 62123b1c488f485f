package mariadb

import (
	"context"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A Querier is asked by a look.
type Querier = querier

// Internals for tests of the package.
var (
	ClassOf    = classOf
	VerifierOf = verifierOf
	Syntax     = uint16(syntaxError)
)

// Explain is what an operator is told of an error.
func Explain(err error) error { return New(Options{}).Explain("target", err) }

// Through has the calls of a provider to servers made by calls.
func Through(p *Provider, calls *providertest.Calls) {
	p.Open = func(access hosted.Access, pool int) (server, error) {
		s, err := openSQL(access, pool)
		if err != nil {
			return nil, err
		}
		return faulty{s, calls, func() (server, error) { return openSQL(access, pool) }, p.Broker}, nil
	}
}

// A faulty server is a real one, whose calls may go wrong on the way.
type faulty struct {
	server
	calls  *providertest.Calls
	again  func() (server, error)
	broker string
}

func (f faulty) Identify(ctx context.Context, broker string, write bool) (who hosted.Said, err error) {
	err = f.calls.Call(ctx, func() (err error) { who, err = f.server.Identify(ctx, broker, write); return err })
	return who, err
}

func (f faulty) Advance(ctx context.Context, broker string, seen, to target.Epoch) (did bool, err error) {
	err = f.calls.Call(ctx, func() (err error) { did, err = f.server.Advance(ctx, broker, seen, to); return err })
	return did, err
}

func (f faulty) Look(ctx context.Context, t provider.Tags) (now seen, err error) {
	err = f.calls.Call(ctx, func() (err error) { now, err = f.server.Look(ctx, t); return err })
	return now, err
}

// Do may land late, when the step's connections are closed: then on one of its own.
func (f faulty) Do(ctx context.Context, t provider.Tags, was seen, act any) error {
	late := false
	err := f.calls.Call(ctx, func() error {
		if !late {
			return f.server.Do(ctx, t, was, act)
		}
		s, err := f.again()
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := s.Identify(context.WithoutCancel(ctx), f.broker, false); err != nil {
			return err
		}
		return s.Do(context.WithoutCancel(ctx), t, was, act)
	})
	late = true
	return err
}

// StatementTime has the statements of providers that are opened from now on end after so many seconds, until the test ends.
func StatementTime(t testing.TB, seconds string) {
	was := session["max_statement_time"]
	session["max_statement_time"] = seconds
	t.Cleanup(func() { session["max_statement_time"] = was })
}

// Defines tells whether a look that a querier answers finds that something runs as an account that is locked, or not yet.
func Defines(ctx context.Context, q querier, locked bool) (bool, error) {
	l := login{name: "a", exists: true}
	if locked {
		l.record.details.Phase = ended
	}
	now := seen{logins: []login{l}}
	err := job{ctx, q, names{database: "d"}}.lookAtDefiners(&now)
	return now.logins[0].defines, err
}

// Events is how many events of a binding that has ended a look finds.
func Events(ctx context.Context, q querier, t provider.Tags) (int, error) {
	l := login{name: namesOf(t).login}
	l.record.details.Phase = ended
	now := seen{logins: []login{l}}
	err := job{ctx, q, namesOf(t)}.lookAtEvents(&now)
	return len(now.logins[0].events), err
}

// LockName is that of the lock that a call holds.
func LockName(identity string, in provider.Instance) string {
	return lockName(identity, namesOf(provider.TagsOf(in)).database)
}
