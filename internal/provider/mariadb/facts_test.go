package mariadb_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
)

// Facts tell what is in use of a tenant's own database; each binding adds its limit of
// connections.
func TestFactsAreOfOneInstance(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.provisioned("mine"), b.provisioned("theirs")
	facts := func(in provider.Instance) provider.Facts {
		t.Helper()
		f, err := b.p.Describe(t.Context(), in)
		if err != nil || f.Size == nil || f.Connections == nil || !strings.HasPrefix(f.Engine, "MariaDB 1") ||
			strings.Contains(f.Engine, "-") || f.Address == "" {
			t.Fatalf("facts %+v, error %v", f, err)
		}
		return f
	}
	_, _, one := b.bound(mine, "one", "")
	_, _, two := b.bound(mine, "two", "")
	exec(t, one, "CREATE TABLE big (t LONGTEXT) ENGINE=MyISAM", "INSERT INTO big VALUES (REPEAT('x', 2000000))",
		"CREATE TABLE processlist (user TEXT)", "CREATE TABLE tables (table_schema TEXT)")
	exec(t, two, "SELECT 1")
	if f := facts(mine); *f.Size < 2_000_000 || *f.Connections != 2 || f.ConnectionLimit != 10 {
		t.Errorf("it holds 2 MB, and two bindings have a session: size %d, connections %d of %d", *f.Size, *f.Connections,
			f.ConnectionLimit)
	}
	if f := facts(theirs); *f.Size != 0 || *f.Connections != 0 || f.ConnectionLimit != 0 {
		t.Errorf("an empty database without bindings: size %d, connections %d of %d", *f.Size, *f.Connections, f.ConnectionLimit)
	}
}
