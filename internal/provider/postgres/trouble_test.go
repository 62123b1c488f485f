package postgres_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// a step is every verb, since each meets the same server.
func (d *desk) steps() map[string]func(context.Context) error {
	b := d.binding("b", "")
	return map[string]func(context.Context) error{
		"Provision":   func(ctx context.Context) error { _, err := d.p.Provision(ctx, d.in); return err },
		"Update":      func(ctx context.Context) error { _, err := d.p.Update(ctx, d.in); return err },
		"Bind":        func(ctx context.Context) error { _, err := d.p.Bind(ctx, b); return err },
		"Unbind":      func(ctx context.Context) error { _, err := d.p.Unbind(ctx, b); return err },
		"Deprovision": func(ctx context.Context) error { _, err := d.p.Deprovision(ctx, d.in); return err },
		"List":        func(ctx context.Context) error { _, _, err := d.p.List(ctx, ""); return err },
	}
}

// A server that cannot be used has each step pass, and the operator told why and what to
// do, without the password; as soon as it can be used again, steps go on.
func TestTroubles(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17", pgtest.Setting("max_connections", "12"))
	access := s.Access()
	for _, tc := range []struct {
		name, kind string
		spoil      func() (mend func())
	}{
		{"Gone", target.Unreachable, func() func() { s.Stop(); return s.Restart }},
		{"Killed", target.Unreachable, func() func() { s.Kill(); return s.Restart }},
		{"Frozen", target.Silent, func() func() { s.Freeze(); return s.Thaw }},
		{"NewPassword", target.Login, func() func() {
			asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" PASSWORD 'another'")
			return func() { asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" PASSWORD '"+access.Password+"'") }
		}},
		{"Locked", target.Login, func() func() {
			asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" NOLOGIN")
			return func() { asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" LOGIN") }
		}},
		{"NoConnections", target.Connections, func() func() {
			asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" CONNECTION LIMIT 0")
			return func() { asSuperuser(t, s, "postgres", "ALTER ROLE "+access.User+" CONNECTION LIMIT -1") }
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t, access, nil) // which closes its connection with each step
			d.in.ID = "instance-" + tc.name
			d.provision()
			mend := tc.spoil()
			for verb, step := range d.steps() {
				if tc.name == "Frozen" && verb != "Bind" && verb != "List" {
					continue // each takes as long as its deadline
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				err := step(ctx)
				cancel()
				providertest.Troubled(t, verb, tc.kind, err)
				if err != nil && strings.Contains(err.Error(), access.Password) {
					t.Errorf("%s tells the password: %v", verb, err)
				}
			}
			mend()
			d.bind("b", "")
			d.unbind("b")
			d.deprovision()
		})
	}
}

// A pool's connections that a restart has ended cost a step at most.
func TestAPoolOutlivesARestart(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "18")
	d := newDesk(t, s.Access(), func(o *postgres.Options) { o.Pool = 3 })
	d.provision()
	for range 2 {
		s.Restart()
		d.bind("b", "")
		d.unbind("b")
	}
	s.Kill()
	for range 3 {
		_, err := d.p.Bind(t.Context(), d.binding("b", ""))
		if failure := (*provider.Failure)(nil); err == nil || errors.As(err, &failure) {
			t.Errorf("with the server gone: %v", err)
		}
	}
	s.Restart()
	d.bind("b", "")
}

// A standby, and a server that starts, are known by what they say themselves.
func TestTroublesOfOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, kind string }{
		"Starting":     {"57P03", target.Starting},
		"ShuttingDown": {"57P01", target.Starting},
		"DiskFull":     {"53100", target.Full},
		"NoMemory":     {"53200", target.Full},
		"TooMany":      {"53300", target.Connections},
		"ReadOnly":     {"25006", target.ReadOnly},
		"Password":     {"28P01", target.Login},
		"Denied":       {"42501", target.Rights},
	} {
		t.Run(name, func(t *testing.T) {
			l := refusing(t, tc.code)
			d := newDesk(t, hosted.Access{Host: "127.0.0.1", Port: l, User: "u", Password: "canary", TLS: hosted.TLSDisable}, nil)
			_, err := d.p.Provision(t.Context(), d.in)
			providertest.Troubled(t, name, tc.kind, err)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
}

// refusing is a server that refuses each session by a code.
func refusing(t *testing.T, code string) (port int) {
	t.Helper()
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			text := "SFATAL\x00VFATAL\x00C" + code + "\x00Mas the test has it\x00\x00"
			_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(text) + 4)}, text...))
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
