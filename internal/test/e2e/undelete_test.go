package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// handle is what an operator hands on for what is to be had back.
var handle = regexp.MustCompile(`[\w-]+@[\w-]+`)

// keeping writes the shipped offering of a provider as an operator's own, whose plan retains what is deleted.
func keeping(t *testing.T, dir, name string) {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join("../../../offerings", name, "offering.yaml")))(t)
	ids := regexp.MustCompile(`(?m)^(id: |- id: )[0-9a-f]{4}`)
	changed := ids.ReplaceAllString(strings.NewReplacer("name: "+name+"\n", "name: kept-"+name+"\n", "on_delete: drop",
		"retain_days: 7").
		Replace(string(text)), "${1}0e2e")
	expect.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(dir, name, "offering.yaml"), []byte(changed), 0o600))
}

// An order in the same space, with what the operator gives, gets a deleted instance back; any other
// order does not. On a real MariaDB and a real Valkey.
func TestUndelete(t *testing.T) {
	t.Parallel()
	database, keys := mariadbtest.Start(t).Access(t), valkeytest.Start(t, "e2e").Access()
	dir, data := t.TempDir(), t.TempDir()
	keeping(t, dir, "mariadb")
	keeping(t, dir, "valkey")
	env := credentials(
		fmt.Sprintf("LONGSHORE_MARIADB_URL=mariadb://%s:%s@%s/%s", database.User, database.Password, database.Address(),
			database.Database),
		fmt.Sprintf("LONGSHORE_VALKEY_URL=redis://%s:%s@%s", keys.User, keys.Password, keys.Address()))
	p := startWith(t, env, "--data", data, "--offerings", dir)
	run := func(args ...string) string {
		t.Helper()
		return does(t, env, append(args, "--data", data, "--offerings", dir)...)
	}
	// whose asks for the owner of what an application sees of a server.
	whose := func(name string, credentials map[string]string, want string) {
		t.Helper()
		for _, seen := range []string{credentials["username"], cmp.Or(credentials["prefix"], credentials["database"])} {
			if said := run("whose", seen); !regexp.MustCompile(`(?m)^instance +` + want + `$`).MatchString(said) {
				t.Errorf("%s: whose %s? It is said:\n%s", name, seen, said)
			}
			if name == "valkey" && strings.HasPrefix(want, "new-") {
				break // its prefix is that of its origin, and the server has no label on prefixes
			}
		}
	}
	for name, c := range map[string]struct {
		plan      string
		write     func(credentials map[string]string)
		readsBack func(credentials map[string]string) error
	}{
		"mariadb": {"small", func(c map[string]string) {
			db := databaseOf(t, c["uri"])
			for _, statement := range []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)",
				"CREATE VIEW v AS SELECT a FROM t"} {
				expect.Get(db.ExecContext(t.Context(), statement))(t, statement)
			}
		}, func(c map[string]string) error {
			return databaseOf(t, c["uri"]).QueryRowContext(t.Context(), "SELECT a FROM v WHERE a = 7").Scan(new(int))
		}},
		"valkey": {"shared", func(c map[string]string) {
			app := keysOf(t, c["uri"])
			expect.OK(t, app.Do(t.Context(), app.B().Set().Key(c["prefix"]+"k").Value("v").Build()).Error())
		}, func(c map[string]string) error {
			app := keysOf(t, c["uri"])
			return app.Do(t.Context(), app.B().Get().Key(c["prefix"]+"k").Build()).Error()
		}},
	} {
		old := order(t, p, "kept-"+name, c.plan, "old-"+name, "")
		first := bindAll(old)[0]
		c.write(first)
		whose(name, first, "old-"+name)
		old.unbind()
		deprovisioned(old)
		expect.Says(t, "retained", run("retained"), "old-"+name)
		given := handle.FindString(run("undelete", "old-"+name))
		from := fmt.Sprintf(`,"parameters":{"restore_from":%q}`, given)
		elsewhere := planBody(old.service, old.plan, strings.Replace(","+place+from, `"s"`, `"another"`, 1))
		must(t, p.url, "PUT", instancePath("thief-"+name)+async, elsewhere, 400)
		back := old
		back.path = instancePath("new-" + name)
		back.begins("PUT", back.path, ","+place+from)
		second := bindAll(back)[0]
		whose(name, second, "new-"+name)
		if err := c.readsBack(second); err != nil {
			t.Errorf("%s: had back, it lacks what was in it: %v", name, err)
		}
		back.unbind()
		deprovisioned(back)
	}
}
