package e2e_test

import (
	"cmp"
	database "database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// The offerings on servers and their plans never change their ids.
const (
	mariadbService = "c6a6a6a0-41d5-4a2e-8d0e-0a5a3b0f7c11"
	mariadbSmall   = "8b6f8a1e-6e4b-4b55-9c39-6b8c6a1d2f21"
	valkeyService  = "a83fba31-a1bf-40b4-acea-05c33884ffef"
	valkeyShared   = "13810a56-53c7-46b4-9966-24e2ea68df9e"
)

// urlOf is how a broker is told of a server.
func urlOf(scheme string, a hosted.Access) string {
	at := fmt.Sprintf("%s://%s:%s@%s", scheme, a.User, a.Password, a.Address())
	if a.Database != "" {
		at += "/" + a.Database
	}
	return at
}

// An application has the credentials of a binding: it writes something, and reads it. What it opened stays open.
type application struct {
	write func()
	reads func() error
}

// onMariaDB opens the URI that was handed out.
func onMariaDB(t *testing.T, c map[string]string) application {
	t.Helper()
	u := expect.Get(url.Parse(c["uri"]))(t)
	expect.Same(t, "the scheme of the uri", "mysql", u.Scheme)
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Passwd, _ = u.User.Password()
	config.Logger = &mysql.NopLogger{}
	db := database.OpenDB(expect.Get(mysql.NewConnector(config))(t))
	t.Cleanup(func() { _ = db.Close() })
	return application{func() {
		for _, statement := range []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)",
			"CREATE VIEW v AS SELECT a FROM t"} {
			expect.Get(db.ExecContext(t.Context(), statement))(t, statement)
		}
	}, func() error { return db.QueryRowContext(t.Context(), "SELECT a FROM v WHERE a = 7").Scan(new(int)) }}
}

// onValkey opens the URI as it was handed out.
func onValkey(t *testing.T, c map[string]string) application {
	t.Helper()
	options := expect.Get(valkey.ParseURL(c["uri"]))(t)
	options.DisableCache = true // CLIENT TRACKING is refused
	app := expect.Get(valkey.NewClient(options))(t)
	t.Cleanup(app.Close)
	get := func(key string) valkey.ValkeyResult { return app.Do(t.Context(), app.B().Get().Key(key).Build()) }
	return application{func() {
		expect.OK(t, app.Do(t.Context(), app.B().Set().Key(c["prefix"]+"k").Value("v").Build()).Error())
		expect.Says(t, "a key outside the prefix", fmt.Sprint(get("k").Error()), "NOPERM")
	}, func() error {
		v, err := get(c["prefix"] + "k").ToString()
		if err == nil && v != "v" {
			err = fmt.Errorf("read %q", v)
		}
		return err
	}}
}

// onAServer is a life on a real server, from the order to the deletion, with a restart of the broker on the way. Without a
// server there is no such offering. After the unbind, the application has neither its session nor another.
func onAServer(t *testing.T, service, plan, password string, again func() *process,
	opened func(*testing.T, map[string]string) application) (had map[string]string) {
	t.Helper()
	without := start(t, t.TempDir(), credentials()...)
	expect.Never(t, "the catalog without a server", must(t, without.url, "GET", "/v2/catalog", "", 200).raw, service)
	r := rented{again(), t, service, plan, instancePath("i")}
	r.begins("PUT", r.path, ","+place)
	r.p.succeeds(t, r.path)
	r.p.kill()
	r.p = again()
	got := bindAll(r)[0]
	app := opened(t, got)
	app.write()
	expect.OK(t, app.reads())
	r.unbind()
	if app.reads() == nil {
		t.Error("the credentials work after the unbind")
	}
	deprovisioned(r)
	expect.Never(t, "what the broker tells", r.p.out.String()+r.p.log.String(), password, got["password"])
	return got
}

// passwordIn writes a password into a file that a setting names.
func passwordIn(t *testing.T, setting, password string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	expect.OK(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	return credentials(setting + "=" + file)
}

func TestMariaDB(t *testing.T) {
	access := mariadbtest.Start(t).Access(t)
	env := append(passwordIn(t, "LONGSHORE_MARIADB_PASSWORD_FILE", access.Password),
		fmt.Sprintf("LONGSHORE_MARIADB_URL=mariadb://%s@%s:%d/%s", access.User, access.Host, access.Port, access.Database))
	data := t.TempDir()
	again := func() *process { return start(t, data, env...) }
	onAServer(t, mariadbService, mariadbSmall, access.Password, again, onMariaDB)
}

func TestValkey(t *testing.T) {
	server := valkeytest.Start(t, "e2e")
	access := server.Access()
	data, env := t.TempDir(), passwordIn(t, "LONGSHORE_VALKEY_PASSWORD_FILE", access.Password)
	again := func() *process {
		return startWith(t, env, "--data", data, "--valkey", fmt.Sprintf("redis://%s@%s", access.User, access.Address()))
	}
	had := onAServer(t, valkeyService, valkeyShared, access.Password, again, onValkey)
	_, err := server.Login(t, had["username"], had["password"])
	expect.Says(t, "a login after the unbind", fmt.Sprint(err), "WRONGPASS")
	if left, err := server.Root(t).Do("KEYS", had["prefix"]+"*"); err != nil || len(left.([]any)) > 0 {
		t.Errorf("keys are left: %v %v", left, err)
	}
}

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
