//go:build unix

package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// onServers are a service and a plan of each provider on servers, by its name.
var onServers = map[string][2]string{
	"postgres": {servicePostgres, planSmall}, "mariadb": {mariadbService, mariadbSmall}, "valkey": {valkeyService, valkeyShared},
}

// ordered are an instance on each server, by its provider's name.
func ordered(t *testing.T, p *process, id string) map[string]rented {
	t.Helper()
	all := map[string]rented{}
	for name, of := range onServers {
		all[name] = rented{p, t, of[0], of[1], instancePath(name + "-" + id)}
		all[name].begins("PUT", all[name].path, ","+place)
	}
	return all
}

// makes requires that a broker makes what was ordered.
func makes(all map[string]rented) {
	for _, r := range all {
		r.t.Helper()
		r.p.succeeds(r.t, r.path)
	}
}

// refuses requires that a broker orders something and makes nothing, on any server.
func refuses(t *testing.T, p *process, id string) map[string]rented {
	t.Helper()
	all := ordered(t, p, id)
	for name, r := range all {
		waitFor(t, settleLimit, "the second broker to say that "+name+" is another's", func() bool {
			return strings.Contains(p.log.String(), "provider="+name+" target=default trouble=copied")
		})
		a := must(t, p.url, "GET", r.path+"/last_operation", "", 200)
		expect.Same(t, name+": the second broker's "+id+" is", "in progress", a.text("state"))
	}
	return all
}

// copiedFolder is a copy of a data folder on which no broker runs. Tar leaves out the socket.
func copiedFolder(t *testing.T, from string) (to string) {
	t.Helper()
	to, archive := t.TempDir(), filepath.Join(t.TempDir(), "folder.tar")
	tar(t, "-cf", archive, "-C", from, ".")
	tar(t, "-xpf", archive, "-C", to)
	return to
}

// Two brokers run on copies of one data folder, at real servers. Whichever comes second
// changes nothing on any, says why, and leaves the first alone, until its operator has it
// take the servers over. A broker that was killed and starts again needs nobody.
func TestACopyBesideTheOriginal(t *testing.T) {
	t.Parallel()
	env := credentials("LONGSHORE_POSTGRES_URL="+urlOf("postgresql", pgtest.Start(t, "17").Access()),
		"LONGSHORE_MARIADB_URL="+urlOf("mariadb", mariadbtest.Start(t).Access(t)),
		"LONGSHORE_VALKEY_URL="+urlOf("redis", valkeytest.Start(t, "copied").Access()))
	data := t.TempDir()
	original := start(t, data, env...)
	makes(ordered(t, original, "before"))
	original.kill()

	copied := copiedFolder(t, data)
	original = start(t, data, env...)
	makes(ordered(t, original, "since"))
	second := start(t, copied, env...)
	refuses(t, second, "late")
	makes(ordered(t, original, "more"))
	second.kill()
	original.kill()

	second = start(t, copiedFolder(t, data), env...) // this time the copy comes first
	makes(ordered(t, second, "copied"))
	original = start(t, data, env...)
	waiting := refuses(t, original, "waiting")
	_, said := run(t, nil, "reconcile", "--data", data)
	expect.Says(t, "reconcile", said, "identity")
	does(t, nil, "reconcile", "--yes", "--data", data)
	makes(waiting)
	refuses(t, second, "late")
}
