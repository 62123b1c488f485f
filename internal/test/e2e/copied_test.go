//go:build unix

package e2e_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// onServers are a service and a plan of each provider on servers, by its name.
var onServers = map[string][2]string{
	"postgres": {servicePostgres, planSmall}, "mariadb": {mariadbService, mariadbSmall}, "valkey": {valkeyService, valkeyShared},
}

// orders has a broker order an instance on each server.
func orders(t *testing.T, p *process, id string) {
	t.Helper()
	for name, of := range onServers {
		must(t, p.url, "PUT", instancePath(name+"-"+id)+"?accepts_incomplete=true",
			fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, of[0], of[1]), 200, 201, 202)
	}
}

// makes requires that a broker makes what was ordered.
func makes(t *testing.T, p *process, id string) {
	t.Helper()
	for name := range onServers {
		if state := settled(t, p.url, instancePath(name+"-"+id)); state != "succeeded" {
			t.Errorf("%s: %s has %s:\n%s", name, id, state, p.log)
		}
	}
}

// refuses requires that a broker orders something and makes nothing, on any server.
func refuses(t *testing.T, p *process, id string) {
	t.Helper()
	orders(t, p, id)
	waitFor(t, settleLimit, "the second broker to say of each server that it is another's", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(onServers)), func(name string) bool {
			return !strings.Contains(p.log.String(), "provider="+name+" target=default trouble=copied")
		})
	})
	for name := range onServers {
		if state := must(t, p.url, "GET", instancePath(name+"-"+id)+"/last_operation", "",
			200).text("state"); state != "in progress" {
			t.Errorf("%s: the second broker's %s is %s", name, id, state)
		}
	}
}

// copiedFolder is a copy of a data folder on which no broker runs.
func copiedFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		within, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, within), 0o700)
		case !d.Type().IsRegular():
			return nil // a socket
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, within), raw, 0o600)
	})
	expect.OK(t, err)
	return to
}

// Two brokers run on copies of one data folder, at real servers. Whichever comes second
// changes nothing on any, says why, and leaves the first alone, until its operator has it
// take the servers over. A broker that was killed and starts again needs nobody.
func TestACopyBesideTheOriginal(t *testing.T) {
	t.Parallel()
	servers := map[string]hosted.Access{
		"POSTGRES": pgtest.Start(t, "17").Access(), "MARIADB": mariadbtest.Start(t).Access(t),
		"VALKEY": valkeytest.Start(t, "copied").Access(),
	}
	schemes := map[string]string{"POSTGRES": "postgresql", "MARIADB": "mariadb", "VALKEY": "redis"}
	env := credentials()
	for name, a := range servers {
		at := fmt.Sprintf("%s://%s:%s@%s:%d", schemes[name], a.User, a.Password, a.Host, a.Port)
		if a.Database != "" {
			at += "/" + a.Database
		}
		env = append(env, "LONGSHORE_"+name+"_URL="+at)
	}
	data := t.TempDir()
	original := start(t, data, env...)
	orders(t, original, "before")
	makes(t, original, "before")
	original.kill()

	copied := copiedFolder(t, data)
	original = start(t, data, env...)
	orders(t, original, "since")
	makes(t, original, "since")
	second := start(t, copied, env...)
	refuses(t, second, "late")
	orders(t, original, "more")
	makes(t, original, "more")
	second.kill()
	original.kill()

	second = start(t, copiedFolder(t, data), env...) // this time the copy comes first
	orders(t, second, "copied")
	makes(t, second, "copied")
	original = start(t, data, env...)
	refuses(t, original, "waiting")
	if out, status := longshore(t, "reconcile", "--data", data); !strings.Contains(out, "identity") {
		t.Errorf("reconcile says with %d:\n%s", status, out)
	}
	if out, status := longshore(t, "reconcile", "--yes", "--data", data); status != 0 {
		t.Errorf("reconcile ends with %d:\n%s", status, out)
	}
	makes(t, original, "waiting")
	refuses(t, second, "late")
}
