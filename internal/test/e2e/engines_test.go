package e2e_test

import (
	database "database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/valkey-io/valkey-go"

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

// onAServer is a life on a real server, from the order to the deletion, with a restart of the broker on the way. Use has what
// an application has, and gives what it does after the unbind. Without a server there is no such offering.
func onAServer(t *testing.T, service, plan, password string, again func() *process, use func(map[string]string) (ended func())) {
	t.Helper()
	without := start(t, t.TempDir(), credentials()...)
	expect.Never(t, "the catalog without a server", must(t, without.url, "GET", "/v2/catalog", "", 200).raw, service)
	r := rented{again(), t, service, plan, instancePath("i")}
	r.begins("PUT", r.path, ","+place)
	r.p.succeeds(t, r.path)
	r.p.kill()
	r.p = again()
	got := bindAll(r)[0]
	ended := use(got)
	r.unbind()
	ended()
	deprovisioned(r)
	expect.Never(t, "what the broker tells", r.p.out.String()+r.p.log.String(), password, got["password"])
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
	onAServer(t, mariadbService, mariadbSmall, access.Password, again, func(c map[string]string) func() {
		db := databaseOf(t, c["uri"])
		for _, statement := range []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"} {
			expect.Get(db.ExecContext(t.Context(), statement))(t, statement)
		}
		return func() {
			if err := db.PingContext(t.Context()); err == nil {
				t.Error("the credentials work after the unbind")
			}
		}
	})
}

func TestValkey(t *testing.T) {
	server := valkeytest.Start(t, "e2e")
	access := server.Access()
	data, env := t.TempDir(), passwordIn(t, "LONGSHORE_VALKEY_PASSWORD_FILE", access.Password)
	again := func() *process {
		return startWith(t, env, "--data", data, "--valkey", fmt.Sprintf("redis://%s@%s", access.User, access.Address()))
	}
	prefix := ""
	onAServer(t, valkeyService, valkeyShared, access.Password, again, func(c map[string]string) func() {
		prefix = c["prefix"]
		app := keysOf(t, c["uri"])
		expect.OK(t, app.Do(t.Context(), app.B().Set().Key(prefix+"k").Value("v").Build()).Error())
		if v, err := app.Do(t.Context(), app.B().Get().Key(prefix+"k").Build()).ToString(); v != "v" || err != nil {
			t.Errorf("read %q: %v", v, err)
		}
		if err := app.Do(t.Context(), app.B().Get().Key("k").Build()).Error(); err == nil ||
			!strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("a key outside the prefix: %v", err)
		}
		return func() {
			if err := app.Do(t.Context(), app.B().Get().Key(prefix+"k").Build()).Error(); err == nil {
				t.Error("the session outlives the unbind")
			}
			_, err := server.Login(t, c["username"], c["password"])
			expect.Says(t, "a login after the unbind", fmt.Sprint(err), "WRONGPASS")
		}
	})
	if left, err := server.Root(t).Do("KEYS", prefix+"*"); err != nil || len(left.([]any)) > 0 {
		t.Errorf("keys are left: %v %v", left, err)
	}
}

// databaseOf opens what a URI says.
func databaseOf(t *testing.T, uri string) *database.DB {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "mysql" {
		t.Fatalf("the uri is none of MySQL's: %v", err)
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Passwd, _ = u.User.Password()
	config.Logger = &mysql.NopLogger{}
	connector := expect.Get(mysql.NewConnector(config))(t)
	db := database.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// keysOf opens what a URI says, as it was handed out.
func keysOf(t *testing.T, uri string) valkey.Client {
	t.Helper()
	options := expect.Get(valkey.ParseURL(uri))(t)
	options.DisableCache = true // CLIENT TRACKING is refused
	client := expect.Get(valkey.NewClient(options))(t)
	t.Cleanup(client.Close)
	return client
}
