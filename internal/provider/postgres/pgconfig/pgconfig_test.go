package pgconfig_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
	"github.com/longshore/longshore/internal/test/expect"
)

// Variables that are for psql change nothing of how the broker connects.
func TestNothingComesFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		expect.OK(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	want := expect.Get(pgconfig.New("h", 7, "d", "u"))(t)
	if c := want.ConnConfig; c.Host != "h" || c.Port != 7 || c.Database != "d" || c.User != "u" || c.Password != "" ||
		c.ConnectTimeout != pgconfig.Timeout || c.TLSConfig != nil || len(c.Fallbacks) != 0 || c.ValidateConnect != nil {
		t.Errorf("it connects as %+v", c.Config)
	}
	services := file("services", "[there]\nhost=elsewhere\nsslmode=verify-full\n")
	for _, v := range [][2]string{
		{"PGHOST", "elsewhere"}, {"PGPORT", "x"}, {"PGDATABASE", "other"}, {"PGUSER", "other"}, {"PGPASSWORD", "other"},
		{"PGPASSFILE", file("pass", "*:*:*:*:canary\n")}, {"PGAPPNAME", "psql"}, {"PGCONNECT_TIMEOUT", "x"}, {"PGSSLMODE", "x"},
		{"PGSSLKEY", "/absent"}, {"PGSSLCERT", "/absent"}, {"PGSSLSNI", "0"}, {"PGSSLROOTCERT", "/absent"}, {"PGSSLPASSWORD", "x"},
		{"PGSSLNEGOTIATION", "direct"}, {"PGTARGETSESSIONATTRS", "standby"}, {"PGSERVICE", "there"}, {"PGSERVICE", "absent"},
		{"PGSERVICEFILE", services}, {"PGTZ", "UTC"}, {"PGOPTIONS", "-c search_path=public"},
	} {
		t.Run(v[0]+"="+filepath.Base(v[1]), func(t *testing.T) {
			t.Setenv(v[0], v[1])
			if v[0] == "PGSERVICE" {
				t.Setenv("PGSERVICEFILE", services)
			}
			got := expect.Get(pgconfig.New("h", 7, "d", "u"))(t)
			if d := cmp.Diff(want.ConnConfig.Config, got.ConnConfig.Config, cmpopts.IgnoreUnexported(pgconn.Config{}, pgx.ConnConfig{}),
				cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type().Kind().String() == "func" }, cmp.Ignore())); d != "" {
				t.Errorf("-without +with it:\n%s", d)
			}
			if got.ConnConfig.ValidateConnect != nil || got.MaxConnLifetime < time.Minute {
				t.Errorf("it asks the server to be another one")
			}
			if os.Getenv(v[0]) != v[1] {
				t.Error("the environment has changed")
			}
		})
	}
}
