package mariadb_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
)

// A server whose folder is put back as it was has the account of a binding that was removed since.
func TestRestored(t *testing.T) {
	t.Parallel()
	b := newOwnBench(t, mariadbtest.New(t))
	b.Restored(func(g *provider.Grant) bool { return opens(t, g) }, func() func() { return b.server.Copied(t) })
}

// An account that a backup caught when it was open already, and not on record as ready, is locked like any other.
func TestOpenAccountsAreLocked(t *testing.T) {
	b, in := newReady(t)
	binding := b.Binding(in, "b", "")
	grant := b.Bind(binding)
	b.server.Root(t, "UPDATE "+b.access.Database+`.things SET details = REPLACE(details, '"ready"', '"making"') WHERE name = ?`,
		grant.Credentials["username"])
	h := provider.Holding{Tags: provider.BindingTagsOf(binding), Target: b.Target}
	expect.OK(t, b.P.Quarantine(t.Context(), h))
	if opens(t, grant) {
		t.Error("in quarantine it opens")
	}
	expect.OK(t, b.P.Release(t.Context(), h))
	b.Bind(binding)
	if !opens(t, grant) {
		t.Error("it opens no more")
	}
}

// A database of the broker's of a version before the first release is refused with one sentence.
func TestAnOldDatabaseIsRefused(t *testing.T) {
	b := newOwnBench(t, mariadbtest.Start(t))
	b.server.Root(t, "ALTER TABLE "+b.access.Database+".brokers DROP epoch")
	_, err := b.P.Provision(t.Context(), b.Instance("i"))
	want := "the broker's own database was written by a version before the first release, which this program does not read: " +
		"give the broker a new one"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
