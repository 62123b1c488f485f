package valkey

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/providertest"
)

// Names and sizes, for tests from outside.
func Name(t provider.Tags) string { return Names(t)[0] }

const PageSize = pageSize

// LabelRule is the rule by which a user of the tags carries its label.
func LabelRule(t provider.Tags) string { return label{Label: hosted.Label{Tags: t}}.rule() }

// Through has each command of the provider be one of the calls. Connections stay
// open until the test ends, so that what is late can land.
func Through(t testing.TB, p *Provider, calls *providertest.Calls) {
	p.Open = func(a hosted.Access, _ int) (*server, error) {
		return &server{access: a, dial: func(ctx context.Context, a hosted.Access) (conn, error) {
			c, err := dial(ctx, a)
			if err != nil {
				return nil, err
			}
			kept := &faulty{conn: c, calls: calls}
			t.Cleanup(func() { kept.once.Do(c.close) })
			return kept, nil
		}}, nil
	}
}

type faulty struct {
	conn
	calls *providertest.Calls
	once  sync.Once
}

// close ends it unless a command of it is still to land.
func (f *faulty) close() {
	if !f.calls.Waiting() {
		f.once.Do(f.conn.close)
	}
}

func (f *faulty) do(ctx context.Context, command ...string) (m valkey.ValkeyMessage, err error) {
	err = f.calls.Call(ctx, func() error {
		m, err = f.conn.do(ctx, command...)
		return err
	})
	return m, err
}

// AdvanceBlindly raises the epoch as a caller does who looked before others raised it, and reports whether it did.
func AdvanceBlindly(ctx context.Context, p *Provider, t provider.Target, to target.Epoch) (bool, error) {
	at, err := p.Reach(t)
	if err != nil {
		return false, err
	}
	defer at.Leave()
	return at.Server.Advance(ctx, p.Broker, target.Epoch{}, to)
}

// EraseSlowly is a step of a deletion at a server that takes this long for each answer, and has keys without end: its
// answers are those of a server with a hundred keys.
func EraseSlowly(t *testing.T, a hosted.Access, in provider.Instance, takes time.Duration) (err error) {
	real, err := dial(t.Context(), a)
	answers := slow{takes: takes}
	if err == nil {
		defer real.close()
		answers.info, err = real.do(t.Context(), "INFO", "server")
	}
	if err == nil {
		answers.scan, err = real.do(t.Context(), "SCAN", scanStart, "MATCH", "none", "COUNT", "1")
	}
	if err != nil {
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), wired.DefaultCallTimeout)
		defer cancel()
		err = (&server{conn: answers}).erase(ctx, in, "none")
	})
	return err
}

type slow struct {
	conn
	takes      time.Duration
	info, scan valkey.ValkeyMessage
}

func (s slow) do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error) {
	if command[0] == "INFO" {
		return s.info, nil
	}
	return s.scan, waiting.For(ctx, s.takes)
}
