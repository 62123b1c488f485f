package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// steps are every verb, since each meets the same server.
func (d *desk) steps() map[string]providertest.Step {
	b := d.binding("b", "")
	return map[string]providertest.Step{
		"Provision": calling(d.p.Provision, &d.in), "Update": calling(d.p.Update, &d.in),
		"Deprovision": calling(d.p.Deprovision, &d.in), "Bind": calling(d.p.Bind, &b), "Unbind": calling(d.p.Unbind, &b),
		"List": func(ctx context.Context) (st provider.Status, err error) {
			_, _, err = d.p.List(ctx, "")
			return st, err
		},
	}
}

// A server that cannot be used has each step pass, and the operator told why and what to
// do, without the password; as soon as it can be used again, steps go on.
func TestTroubles(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17", pgtest.Setting("max_connections", "12"))
	access := s.Access()
	// altered changes the broker's login, and changes it back.
	altered := func(how, back string) func() func() {
		role := "ALTER ROLE " + access.User + " "
		return func() func() {
			s.Exec("postgres", role+how)
			return func() { s.Exec("postgres", role+back) }
		}
	}
	for _, tc := range []struct {
		name, kind string
		spoil      func() (mend func())
	}{
		{"Gone", target.Unreachable, func() func() { s.Stop(); return s.Restart }},
		{"Killed", target.Unreachable, func() func() { s.Kill(); return s.Restart }},
		{"Frozen", target.Silent, func() func() { s.Freeze(); return s.Thaw }},
		{"NewPassword", target.Login, altered("PASSWORD 'another'", "PASSWORD '"+access.Password+"'")},
		{"Locked", target.Login, altered("NOLOGIN", "LOGIN")},
		{"NoConnections", target.Connections, altered("CONNECTION LIMIT 0", "CONNECTION LIMIT -1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t, access) // which closes its connection with each step
			d.in.ID = "instance-" + tc.name
			d.provision()
			mend := tc.spoil()
			for verb, step := range d.steps() {
				if tc.name == "Frozen" && verb != "Bind" && verb != "List" {
					continue // each takes as long as its deadline
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, err := step(ctx)
				cancel()
				providertest.Troubled(t, verb, tc.kind, err)
				expect.Never(t, verb, fmt.Sprint(err), access.Password)
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
	d := ready(t, s.Access(), pool(3))
	for range 2 {
		s.Restart()
		d.bind("b", "")
		d.unbind("b")
	}
	s.Kill()
	for range 3 {
		_, err := d.p.Bind(t.Context(), d.binding("b", ""))
		if err == nil || errors.As(err, new(*provider.Failure)) {
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
		"Starting": {"57P03", target.Starting}, "ShuttingDown": {"57P01", target.Starting}, "DiskFull": {"53100", target.Full},
		"NoMemory": {"53200", target.Full}, "TooMany": {"53300", target.Connections}, "ReadOnly": {"25006", target.ReadOnly},
		"Password": {"28P01", target.Login}, "Denied": {"42501", target.Rights},
	} {
		t.Run(name, func(t *testing.T) {
			l := refusing(t, tc.code)
			d := newDesk(t, hosted.Access{Host: "127.0.0.1", Port: l, User: "u", Password: "canary", TLS: hosted.TLSDisable})
			_, err := d.p.Provision(t.Context(), d.in)
			providertest.Troubled(t, name, tc.kind, err)
			expect.Never(t, "the error", fmt.Sprint(err), "canary")
		})
	}
}

// refusing is a server that refuses each session by a code.
func refusing(t *testing.T, code string) (port int) {
	t.Helper()
	l := listener(t)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Read(make([]byte, 4096))
			text := "SFATAL\x00VFATAL\x00C" + code + "\x00Mas the test has it\x00\x00"
			_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(text) + 4)}, text...))
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// listener listens on this machine until the test ends.
func listener(t *testing.T) net.Listener {
	t.Helper()
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}
