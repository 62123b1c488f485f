package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// Facts tell what is in use of a tenant's own database, whatever a tenant makes up.
func TestFactsAreOfOneInstance(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.in.Snapshot = json.RawMessage(`{"connection_limit":7,"size_warning":64}`)
		d.provision()
		other := *d
		other.in.ID, other.in.Incarnation = "theirs", "op-theirs"
		other.provision()
		facts := func(d *desk) provider.Facts {
			t.Helper()
			f, err := d.p.Describe(t.Context(), d.in)
			if err != nil || f.Size == nil || f.Connections == nil || f.SizeLimit != 64<<20 || f.ConnectionLimit != 7 ||
				!strings.HasPrefix(f.Engine, "PostgreSQL 1") || strings.Contains(f.Engine, "(") || f.Address == "" {
				t.Fatalf("facts %+v, error %v", f, err)
			}
			return f
		}
		theirs := facts(&other)
		a, b := login(t, d.bind("a", "")), login(t, d.bind("b", ""))
		exec(t, a, "CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)",
			"CREATE TABLE pg_database (datname text)", "CREATE VIEW pg_stat_activity AS SELECT 1 AS datid",
			"CREATE FUNCTION pg_database_size(oid) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
		if f := facts(d); *f.Size < 4_000_000 || *f.Connections != 2 {
			t.Errorf("it holds 4 MB and has two sessions: size %d, connections %d", *f.Size, *f.Connections)
		}
		if f := facts(&other); *f.Size != *theirs.Size || *f.Connections != 0 {
			t.Errorf("another one's facts: size %d, was %d, connections %d", *f.Size, *theirs.Size, *f.Connections)
		}
		end(b)
	})
}
