package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/test/testkit"
)

// No command opens a folder whose key is lost with another key, and each says what to do.
// With the right key nothing was lost; without it, rebuild keeps what needs no key.
func TestALostKey(t *testing.T) {
	for name, lose := range map[string]func(path string, key []byte) error{
		"Missing":  func(path string, _ []byte) error { return os.Remove(path) },
		"CutShort": func(path string, key []byte) error { return os.WriteFile(path, key[:7], 0o600) },
		"Empty":    func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"OneBit": func(path string, key []byte) error {
			return os.WriteFile(path, append([]byte{key[0] ^ 1}, key[1:]...), 0o600)
		},
		"OfAnother": func(path string, key []byte) error { return os.WriteFile(path, make([]byte, len(key)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.provision("ready-1", "sync", 0, 201)
			binding := "/v2/service_instances/ready-1/service_bindings/bound-1"
			bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":{"note":%q}}`, b.service, b.plans["sync"], secretText)
			credentials := b.send("PUT", binding, bind, 201)
			slow := b.provision("slow-1", "async", 3600, 202)
			b.stop()
			path := filepath.Join(b.dir, "vault.key")
			key, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := lose(path, key); err != nil {
				t.Fatal(err)
			}

			for _, args := range [][]string{
				{"instances"}, {"bindings"}, {"operations"}, {"instances", "--watch"}, {"retry", slow}, {"settle", slow,
					"--failed", "No.", "--yes"},
				{"reaper", "report"}, {"reaper", "resume"},
			} {
				has(t, b.operate(1, args...), "restore vault.key from a backup", "longshore rebuild --yes")
			}
			var refused *advice.Error
			settings := embedded.Settings{Data: b.dir, Username: checkUser, Password: checkPassword}
			if _, err := embedded.Open(settings, testkit.Demo(),
				slog.New(slog.DiscardHandler)); !errors.As(err, &refused) {
				t.Fatalf("the broker starts: %v", err)
			}
			has(t, refused.Error(), "restore vault.key from a backup", "longshore rebuild --yes")

			if err := os.WriteFile(path, key, 0o600); err != nil {
				t.Fatal(err)
			}
			b.start()
			if again := b.send("PUT", binding, bind, 200); again != credentials {
				t.Errorf("with the right key, the credentials are %s, and were %s", again, credentials)
			}
			b.stop()

			if err := lose(path, key); err != nil {
				t.Fatal(err)
			}
			has(t, b.operate(0, "rebuild", "--yes"), "0 instances and 0 bindings have a record again",
				"parameters of these:\n  ready-1\n  slow-1\n",
				"rotate these, or unbind and bind again:\n  ready-1/bound-1\n", "has failed:\n  slow-1\n")
			if made, err := os.ReadFile(path); err != nil || string(made) == string(key) || len(made) != len(key) {
				t.Errorf("the key is not a new one: %v", err)
			}
			b.start()
			b.send("GET", "/v2/service_instances/ready-1", "", 200)
			for _, said := range []string{b.send("GET", binding, "", 422), b.send("PUT", binding, bind, 422)} {
				has(t, said, "credentials of this service binding were lost")
			}
			if poll := b.send("GET", "/v2/service_instances/slow-1/last_operation?operation="+slow, "",
				200); !strings.Contains(poll, `"failed"`) {
				t.Errorf("what could not go on: %s", poll)
			}
			b.send("PUT", binding+"-next", bind, 201)
			hints := "?service_id=" + b.service + "&plan_id=" + b.plans["sync"]
			for _, path := range []string{binding, binding + "-next", "/v2/service_instances/ready-1"} {
				b.send("DELETE", path+hints, "", 200)
			}
			b.send("DELETE", "/v2/service_instances/slow-1"+hints+"&accepts_incomplete=true", "", 202)
		})
	}
}
