package mariadb_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// newOwnBench is a bench whose broker has a login and a database of its own on a server.
func newOwnBench(t testing.TB, s *mariadbtest.Server) *bench {
	t.Helper()
	w := &world{t: t, server: s, clock: newClock(), calls: &providertest.Calls{}, broker: "broker"}
	w.access = w.server.Access(t)
	return benchOf(w)
}

// A server whose folder is put back as it was has the account of a binding that was
// removed since. Nothing is changed on it until each such account is locked.
func TestRestored(t *testing.T) {
	b := newOwnBench(t, mariadbtest.New(t))
	in := b.instance("i")
	must(b, b.p.Provision, in)
	removed, kept := b.binding(in, "removed", ""), b.binding(in, "kept", "")
	gone, stays := must(b, b.p.Bind, removed).Grant, must(b, b.p.Bind, kept).Grant
	restore := b.server.Copied(t)
	must(b, b.p.Unbind, removed)
	known := providertest.Raise(t, b.p, b.target)
	restore()
	if !opens(t, gone) {
		t.Fatal("the restored server lacks the account, so that nothing is shown")
	}
	in.Epoch, kept.Instance.Epoch = known, known
	page, _, err := b.p.Holdings(t.Context(), b.target.Name, "")
	if err != nil || len(page) != 3 {
		t.Fatalf("it lists %+v: %v", page, err)
	}
	providertest.RefusesAll(t, b.p, in, b.binding(in, "next", ""), kept)
	first := page[0]
	first.Epoch = known
	providertest.Troubled(t, "Quarantine", target.Restored, b.p.Quarantine(t.Context(), first))
	providertest.Troubled(t, "Adopt", target.Restored, b.p.Adopt(t.Context(), first, provider.TagsOf(in)))
	next := providertest.GoesOn(t, b.p, b.target, known)
	for _, h := range page {
		if h.Epoch = next; h.Tags.Binding == "removed" {
			if err := b.p.Quarantine(t.Context(), h); err != nil {
				t.Error(err)
			}
		}
	}
	if in.Epoch = next; opens(t, gone) || !opens(t, stays) {
		t.Error("want the account that was removed locked, and that of a live binding open")
	}
	must(b, b.p.Bind, b.binding(in, "next", ""))
}

// An account that a backup caught when it was open already, and not on record as ready, is locked like any other.
func TestOpenAccountsAreLocked(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding := b.binding(in, "b", "")
	grant := must(b, b.p.Bind, binding).Grant
	b.server.Root(t, "UPDATE "+b.access.Database+`.things SET details = REPLACE(details, '"ready"', '"making"') WHERE name = ?`,
		grant.Credentials["username"])
	for _, h := range b.held() {
		if h.Tags.Binding == "" {
			continue
		}
		if err := b.p.Quarantine(t.Context(), h); err != nil || opens(t, grant) {
			t.Errorf("in quarantine it opens: %v", err)
		}
		if err := b.p.Release(t.Context(), h); err != nil {
			t.Error(err)
		}
	}
	must(b, b.p.Bind, binding)
	if !opens(t, grant) {
		t.Error("it opens no more")
	}
}

// A database of the broker's of a version before the first release is refused with one sentence.
func TestAnOldDatabaseIsRefused(t *testing.T) {
	b := newOwnBench(t, mariadbtest.Start(t))
	b.server.Root(t, "ALTER TABLE "+b.access.Database+".brokers DROP epoch")
	_, err := b.p.Provision(t.Context(), b.instance("i"))
	want := "the broker's own database is of a version before the first release, which this program does not read: " +
		"give the broker a new one"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
