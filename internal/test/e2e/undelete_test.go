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
	kept := strings.NewReplacer("name: "+name+"\n", "name: kept-"+name+"\n", "on_delete: drop", "retain_days: 7")
	changed := ids.ReplaceAllString(kept.Replace(string(text)), "${1}0e2e")
	expect.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(dir, name, "offering.yaml"), []byte(changed), 0o600))
}

// An order in the same space, with what the operator gives, gets a deleted instance back; any other
// order does not. On a real MariaDB and a real Valkey.
func TestUndelete(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	keeping(t, dir, "mariadb")
	keeping(t, dir, "valkey")
	env := credentials("LONGSHORE_MARIADB_URL="+urlOf("mariadb", mariadbtest.Start(t).Access(t)),
		"LONGSHORE_VALKEY_URL="+urlOf("redis", valkeytest.Start(t, "e2e").Access()))
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
		plan   string
		opened func(*testing.T, map[string]string) application
	}{"mariadb": {"small", onMariaDB}, "valkey": {"shared", onValkey}} {
		old := order(t, p, "kept-"+name, c.plan, "old-"+name, "")
		first := bindAll(old)[0]
		c.opened(t, first).write()
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
		expect.Fails(t, name+": had back, what was in it", nil, c.opened(t, second).reads())
		back.unbind()
		deprovisioned(back)
	}
}
