package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/test/valkeytest"
)

// The offering and its plan never change their ids.
const (
	valkeyService = "a83fba31-a1bf-40b4-acea-05c33884ffef"
	valkeyShared  = "13810a56-53c7-46b4-9966-24e2ea68df9e"
)

// Keys on a real Valkey, from the order to the deletion, with a restart of the
// broker on the way. Without a server there is no such offering.
func TestValkey(t *testing.T) {
	server := valkeytest.Start(t, "e2e")
	access := server.Access()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(access.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	without := start(t, t.TempDir(), credentials()...)
	if strings.Contains(must(t, without.url, "GET", "/v2/catalog", "", 200).raw, valkeyService) {
		t.Error("valkey is offered without a server")
	}
	data, env := t.TempDir(), credentials("LONGSHORE_VALKEY_PASSWORD_FILE="+file)
	again := func() *process {
		return startWith(t, env, "--data", data, "--valkey", fmt.Sprintf("redis://%s@%s", access.User, access.Address()))
	}
	p := again()
	instance := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`,
		valkeyService, valkeyShared)
	ids := fmt.Sprintf("?accepts_incomplete=true&service_id=%s&plan_id=%s", valkeyService, valkeyShared)
	must(t, p.url, "PUT", instancePath("i")+ids, instance, 201, 202)
	if state := settled(t, p.url, instancePath("i")); state != "succeeded" {
		t.Fatalf("the provision has %s:\n%s", state, p.log)
	}
	p.kill()
	p = again()

	binding := instancePath("i") + "/service_bindings/b"
	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, valkeyService, valkeyShared)
	must(t, p.url, "PUT", binding+ids, bind, 201, 202)
	if state := settled(t, p.url, binding); state != "succeeded" {
		t.Fatalf("the bind has %s:\n%s", state, p.log)
	}
	got, _ := must(t, p.url, "GET", binding, "", 200).body["credentials"].(map[string]any)
	uri, prefix := fmt.Sprint(got["uri"]), fmt.Sprint(got["prefix"])
	app := keysOf(t, uri)
	if err := app.Do(t.Context(), app.B().Set().Key(prefix+"k").Value("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if v, err := app.Do(t.Context(), app.B().Get().Key(prefix+"k").Build()).ToString(); v != "v" || err != nil {
		t.Errorf("read %q: %v", v, err)
	}
	if err := app.Do(t.Context(), app.B().Get().Key("k").Build()).Error(); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a key outside the prefix: %v", err)
	}

	must(t, p.url, "DELETE", binding+ids, "", 200, 202)
	if state := settled(t, p.url, binding); state == "failed" {
		t.Errorf("the unbind has %s:\n%s", state, p.log)
	}
	if err := app.Do(t.Context(), app.B().Get().Key(prefix+"k").Build()).Error(); err == nil {
		t.Error("the session outlives the unbind")
	}
	u, _ := url.Parse(uri)
	password, _ := u.User.Password()
	if _, err := server.Login(t, u.User.Username(), password); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a login after the unbind: %v", err)
	}
	must(t, p.url, "DELETE", instancePath("i")+ids, "", 200, 202)
	if state := settled(t, p.url, instancePath("i")); state == "failed" {
		t.Errorf("the deprovision has %s:\n%s", state, p.log)
	}
	if left, err := server.Root(t).Do("KEYS", prefix+"*"); err != nil || len(left.([]any)) > 0 {
		t.Errorf("keys are left: %v %v", left, err)
	}
	for _, secret := range []string{access.Password, password} {
		if strings.Contains(p.out.String()+p.log.String(), secret) {
			t.Error("the broker tells a password")
		}
	}
}

// keysOf opens what a URI says, as it was handed out.
func keysOf(t *testing.T, uri string) valkey.Client {
	t.Helper()
	options, err := valkey.ParseURL(uri)
	if err != nil {
		t.Fatal(err)
	}
	options.DisableCache = true // CLIENT TRACKING is refused
	client, err := valkey.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
