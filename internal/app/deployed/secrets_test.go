package deployed_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/provisioner"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// secretOf is a server's secret as RDS writes it.
func secretOf(t *testing.T, a hosted.Access) *string {
	t.Helper()
	return aws.String(string(expect.Get(json.Marshal(map[string]any{"engine": "postgres", "host": a.Host, "port": a.Port,
		"username": a.User, "password": a.Password, "dbname": a.Database, "ca": a.CA, "sslmode": a.TLS}))(t)))
}

// The functions together, over a server that only the one inside a VPC talks to: it is reached as its secret says, and when the
// password of the broker's login is rotated, the steps that met the old one go on by themselves.
func TestPostgresThroughAVPC(t *testing.T) {
	server := pgtest.Start(t, "17")
	access := server.Access()
	cfg := emulator.Config(t)
	client := secretsmanager.NewFromConfig(cfg)
	secret := expect.Get(client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String(emulator.Name("server")), SecretString: secretOf(t, access)}))(t)
	f := newTogether(t, cfg, map[string]string{
		app.EnvProviders: app.ProviderPostgres, app.EnvInVPC: app.ProviderPostgres, app.EnvCalls: callsARN,
		providers.Servers()[app.ProviderPostgres].EnvSecrets(): "default=" + *secret.ARN,
	})
	service, plan := f.plan("postgres", "small")
	ids := "accepts_incomplete=true&service_id=" + service + "&plan_id=" + plan
	const path = "/v2/service_instances/i"
	f.call("PUT", path, "accepts_incomplete=true", order(service, plan, ""), 202)
	f.drive()
	bound := f.call("PUT", path+"/service_bindings/b", "", binding(service, plan), 201)
	credentials, _ := bound["credentials"].(map[string]any)
	uri, _ := credentials["uri"].(string)
	if _, code := pgtest.Login(t, uri); code != "" {
		t.Fatalf("the credentials are refused: %s", code)
	}

	rotated := access
	rotated.Password = access.Password + "rotated"
	server.Exec("", "ALTER ROLE "+access.User+" PASSWORD '"+rotated.Password+"'")
	expect.Get(client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: secret.ARN, SecretString: secretOf(t, rotated)}))(t)

	called := f.here.called
	f.call("DELETE", path, ids, "", 202)
	f.drive()
	_, code := pgtest.Login(t, uri)
	expect.Same(t, "after the deletion the login ends with", "28P01", code)
	f.call("GET", path, "", "", 404)
	databases, roles := server.Made(access.User)
	expect.Same(t, "the databases and roles that are left", [2]int{}, [2]int{databases, roles})
	if !strings.Contains(server.Log(), `password authentication failed for user "`+access.User) || f.here.called == called {
		t.Error("nobody has met the old password: the test proves nothing")
	}
	expect.Get(f.sweep(t.Context()))(t)
}

// The same functions, with the demo's calls made by the one inside a VPC, which the others record.
func TestFunctionsTogetherThroughAVPC(t *testing.T) {
	f := newTogether(t, emulator.Config(t), map[string]string{app.EnvInVPC: "demo", app.EnvCalls: callsARN})
	f.live()
	if f.here.called < 4 {
		t.Errorf("the function inside was called %d times", f.here.called)
	}
}

// The longest call that a step may make ends before the function inside does, and that before a lease that a step takes is over.
func TestCallsEndBeforeTheirLease(t *testing.T) {
	longest := map[string]wired.Provider{"longest": {Provider: demo.New(0, time.Now), CallTimeout: app.CallsTimeout}}
	if wired.Check(longest, app.ProvisionerTimeout) == nil {
		t.Error("a step may make a call that the function inside does not outlive")
	}
	if app.CallsTimeout >= app.ProvisionerTimeout {
		t.Error("the function inside lives longer than whoever called it")
	}
}

// In its usual role the provisioner serves steps, inside a VPC calls alone.
func TestProvisionerOrCalls(t *testing.T) {
	p := deployed.Parts{Log: slog.New(slog.DiscardHandler), Getenv: func(name string) string {
		return map[string]string{app.EnvInVPC: "demo", app.EnvProviders: "demo", app.EnvTable: "t", app.EnvKey: "k"}[name]
	}}
	err := expect.Err(provisioner.New(t.Context(), p))
	expect.Says(t, "a provisioner that does not know the function inside", fmt.Sprint(err), app.EnvCalls)
}
