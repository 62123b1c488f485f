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

	"github.com/longshore/longshore/internal/test/mariadbtest"
)

// The offering and its plan small never change their ids.
const (
	mariadbService = "c6a6a6a0-41d5-4a2e-8d0e-0a5a3b0f7c11"
	mariadbSmall   = "8b6f8a1e-6e4b-4b55-9c39-6b8c6a1d2f21"
)

// A database on a real MariaDB, from the order to the deletion, with a restart of
// the broker on the way. Without a server there is no such offering.
func TestMariaDB(t *testing.T) {
	access := mariadbtest.Start(t).Access(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(access.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("mariadb://%s@%s:%d/%s", access.User, access.Host, access.Port, access.Database)
	env := credentials("LONGSHORE_MARIADB_PASSWORD_FILE="+file, "LONGSHORE_MARIADB_URL="+server)
	data := t.TempDir()
	without := start(t, t.TempDir(), credentials()...)
	if strings.Contains(must(t, without.url, "GET", "/v2/catalog", "", 200).raw, mariadbService) {
		t.Error("mariadb is offered without a server")
	}
	p := start(t, data, env...)
	instance := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`,
		mariadbService, mariadbSmall)
	ids := fmt.Sprintf("?accepts_incomplete=true&service_id=%s&plan_id=%s", mariadbService, mariadbSmall)
	must(t, p.url, "PUT", instancePath("i")+ids, instance, 201, 202)
	if state := settled(t, p.url, instancePath("i")); state != "succeeded" {
		t.Fatalf("the provision has %s:\n%s", state, p.log)
	}
	p.kill()
	p = start(t, data, env...)

	binding := instancePath("i") + "/service_bindings/b"
	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, mariadbService, mariadbSmall)
	must(t, p.url, "PUT", binding+ids, bind, 201, 202)
	if state := settled(t, p.url, binding); state != "succeeded" {
		t.Fatalf("the bind has %s:\n%s", state, p.log)
	}
	got, _ := must(t, p.url, "GET", binding, "", 200).body["credentials"].(map[string]any)
	db := databaseOf(t, fmt.Sprint(got["uri"]))
	for _, statement := range []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	must(t, p.url, "DELETE", binding+ids, "", 200, 202)
	if state := settled(t, p.url, binding); state == "failed" {
		t.Errorf("the unbind has %s:\n%s", state, p.log)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("the credentials work after the unbind")
	}
	must(t, p.url, "DELETE", instancePath("i")+ids, "", 200, 202)
	if state := settled(t, p.url, instancePath("i")); state == "failed" {
		t.Errorf("the deprovision has %s:\n%s", state, p.log)
	}
	for _, secret := range []string{access.Password, fmt.Sprint(got["password"])} {
		if strings.Contains(p.out.String()+p.log.String(), secret) {
			t.Error("the broker tells a password")
		}
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
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
