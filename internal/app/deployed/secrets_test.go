package deployed_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// secretOf is a server's secret as RDS writes it.
func secretOf(t *testing.T, a hosted.Access) *string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"engine": "postgres", "host": a.Host, "port": a.Port, "username": a.User,
		"password": a.Password,
		"dbname":   a.Database, "ca": a.CA, "sslmode": a.TLS})
	if err != nil {
		t.Fatal(err)
	}
	return aws.String(string(raw))
}

// The functions together, over a server that only the one inside a VPC talks to: it
// is reached as its secret says, and when the password of the broker's login is
// rotated, the steps that met the old one go on by themselves.
func TestPostgresThroughAVPC(t *testing.T) {
	server := pgtest.Start(t, "17")
	access := server.Access()
	cfg := emulator.Config(t)
	client := secretsmanager.NewFromConfig(cfg)
	secret, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String(emulator.Name("server")), SecretString: secretOf(t, access),
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newTogether(t, cfg, map[string]string{
		app.EnvProviders: app.ProviderPostgres, app.EnvInVPC: app.ProviderPostgres, app.EnvCalls: callsARN,
		providers.Servers()[app.ProviderPostgres].EnvSecrets(): "default=" + *secret.ARN,
	})
	service, plan := planIn(t, f.call("GET", "/v2/catalog", "", "", 200), "postgres", "small")
	ids := "accepts_incomplete=true&service_id=" + service + "&plan_id=" + plan
	const path = "/v2/service_instances/i"
	f.call("PUT", path, "accepts_incomplete=true",
		fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, service, plan), 202)
	f.drive()
	bound := f.call("PUT", path+"/service_bindings/b", "", fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, plan), 201)
	credentials, _ := bound["credentials"].(map[string]any)
	uri, _ := credentials["uri"].(string)
	if _, code := pgtest.Login(t, uri); code != "" {
		t.Fatalf("the credentials are refused: %s", code)
	}

	rotated := access
	rotated.Password = access.Password + "rotated"
	server.Exec("", "ALTER ROLE "+access.User+" PASSWORD '"+rotated.Password+"'")
	if _, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: secret.ARN, SecretString: secretOf(t, rotated),
	}); err != nil {
		t.Fatal(err)
	}
	called := f.here.called
	f.call("DELETE", path, ids, "", 202)
	f.drive()
	if _, code := pgtest.Login(t, uri); code != "28P01" {
		t.Errorf("after the deletion the login ends with %q", code)
	}
	f.call("GET", path, "", "", 404)
	if databases, roles := server.Made(access.User); databases != 0 || roles != 0 {
		t.Errorf("%d databases and %d roles are left", databases, roles)
	}
	if !strings.Contains(server.Log(), `password authentication failed for user "`+access.User) || f.here.called == called {
		t.Error("nobody has met the old password: the test proves nothing")
	}
	if _, err := f.sweep(t.Context()); err != nil {
		t.Error(err)
	}
}
