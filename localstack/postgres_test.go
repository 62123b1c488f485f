//go:build deployed

package localstack_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// reaches reports whether the emulator's functions reach a server on this machine's loopback: MiniStack runs them as
// processes beside it. What Docker runs does not, and what an external emulator does is not known.
func reaches(t *testing.T) bool {
	t.Helper()
	base := script(t.Context(), t, "", `source lib.sh; base_path`, "")
	return strings.Contains(base, "_user_request_")
}

// serverSecret puts how a server is reached into Secrets Manager, as RDS does.
func serverSecret(t *testing.T, client *secretsmanager.Client, a hosted.Access) (arn string) {
	t.Helper()
	keep("the password of the broker's login", a.Password)
	raw := expect.Get(json.Marshal(map[string]any{"engine": "postgres", "host": a.Host, "port": a.Port, "username": a.User,
		"password": a.Password, "dbname": a.Database, "sslmode": a.TLS}))(t)
	made := expect.Get(client.CreateSecret(t.Context(),
		&secretsmanager.CreateSecretInput{Name: aws.String(emulator.Name("server")), SecretString: aws.String(string(raw))}))(t)
	t.Cleanup(func() {
		_, _ = client.DeleteSecret(context.Background(), &secretsmanager.DeleteSecretInput{SecretId: made.ARN,
			ForceDeleteWithoutRecovery: aws.Bool(true)})
	})
	return *made.ARN
}

// A broker that is deployed with a PostgreSQL server: the function inside the VPC, which has no rights, makes databases and
// logins on it that work, and removes them; an operator's command lists them by the same way. Where functions do not reach
// the server, nothing is shown: LocalStack deploys no function into a subnet that does not exist.
func TestPostgresOfAStack(t *testing.T) {
	t.Parallel()
	if !reaches(t) {
		t.Log("this emulator's functions do not reach the server: that databases are made is not shown")
		return
	}
	server := pgtest.Start(t, "17")
	access := server.Access()
	arn := serverSecret(t, secretsmanager.NewFromConfig(emulator.Config(t)), access)
	stack := id("Postgres")
	with := "-c postgres=true -c postgres-secret=" + arn +
		" -c subnets=subnet-0123456789abcdef0 -c security-groups=sg-0123456789abcdef0"
	t.Cleanup(func() { script(context.Background(), t, stack, "bash destroy.sh", with) })
	script(t.Context(), t, stack, "bash deploy.sh", with)
	p := brokerOf(t, stack)
	service, plan := p.planOf(t, "postgres", "small")
	path := instancePath("i")
	p.ends(t, "PUT", path, "", order(service, plan, ""))
	binding := path + "/service_bindings/b"
	uri := texts(p.call(t, "PUT", binding, bind(service, plan), 201).body["credentials"])["uri"]
	conn, code := pgtest.Login(t, uri)
	if code != "" {
		t.Fatalf("the credentials are refused: %s", code)
	}
	expect.Get(conn.Exec(t.Context(), "CREATE TABLE t (n int); INSERT INTO t VALUES (42)"))(t)
	expect.OK(t, conn.Close(t.Context()))

	// A command of the operator's sees what the function inside lists.
	expect.Says(t, "of what exists, an operator is told", longshoreOn(t, stack, "rebuild", "--yes"), "; 2 had one.")

	p.call(t, "DELETE", binding+"?"+hintsOf(service, plan), "", 200)
	if _, code := pgtest.Login(t, uri); code != "28P01" {
		t.Errorf("after the unbind the login ends with %q", code)
	}
	p.ends(t, "DELETE", path, hintsOf(service, plan), "")
	if databases, roles := server.Made(access.User); databases != 0 || roles != 0 {
		t.Errorf("%d databases and %d roles are left on the server", databases, roles)
	}

	// A plan retains the deleted database, and an order gets it back: the order removes the record of what was kept.
	_, retains := p.planOf(t, "postgres", "large")
	p.ends(t, "PUT", instancePath("kept"), "", order(service, retains, ""))
	p.ends(t, "DELETE", instancePath("kept"), hintsOf(service, retains), "")
	handle := said(t, longshoreOn(t, stack, "undelete", "kept"), `"restore_from":"([^"]+)"`)
	p.ends(t, "PUT", instancePath("back"), "", order(service, retains, `,"parameters":{"restore_from":"`+handle+`"}`))
	p.call(t, "GET", instancePath("back"), "", 200)
	expect.Says(t, "what is retained", longshoreOn(t, stack, "retained"), "Nothing is retained.")
}

// planOf finds the ids of a plan in the catalog.
func (p platform) planOf(t *testing.T, offering, name string) (service, plan string) {
	t.Helper()
	var catalog struct {
		Services []struct {
			ID, Name string
			Plans    []struct{ ID, Name string }
		}
	}
	expect.OK(t, json.Unmarshal([]byte(p.call(t, "GET", "/v2/catalog", "", 200).raw), &catalog))
	for _, s := range catalog.Services {
		for _, one := range s.Plans {
			if s.Name == offering && one.Name == name {
				return s.ID, one.ID
			}
		}
	}
	t.Fatalf("%s has no plan %s", offering, name)
	return "", ""
}
