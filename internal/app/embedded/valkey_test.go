package embedded_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// A server behind TLS, by rediss:// and its certificate: apps get in with what they
// are given, until the unbind. Without the URL the offering stays, as there is an
// instance.
func TestValkeyByTLS(t *testing.T) {
	t.Parallel()
	server := valkeytest.Start(t, "app")
	access := server.Access()
	port, ca := server.TLS(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	expect.OK(t, os.WriteFile(file, []byte(ca), 0o600))
	from := url.URL{Scheme: "rediss", User: url.UserPassword(access.User, access.Password),
		Host: fmt.Sprintf("%s:%d", access.Host, port), RawQuery: url.Values{"sslrootcert": {file}}.Encode()}
	b := newEmbedded(t)
	b.start(map[string]string{"LONGSHORE_VALKEY_URL": from.String()})
	service, plan, _ := b.ids("valkey", "shared")
	b.provision("service_instances/i", service, plan)
	got := b.bind("service_instances/i/service_bindings/b", service, plan)
	options, err := valkey.ParseURL(got["uri"].(string))
	if err != nil || options.TLSConfig == nil {
		t.Fatalf("the uri has no TLS: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(got["ca"].(string)))
	options.TLSConfig, options.DisableCache = &tls.Config{ServerName: access.Host, RootCAs: roots,
		MinVersion: tls.VersionTLS12}, true
	enter := func() error {
		client, err := valkey.NewClient(options)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Do(t.Context(), client.B().Set().Key(got["prefix"].(string)+"k").Value("v").Build()).Error()
	}
	expect.OK(t, enter())

	b.start(nil)
	if _, _, offers := b.ids("valkey", "shared"); !offers {
		t.Error("an offering with an instance has gone")
	}
	b.start(map[string]string{"LONGSHORE_VALKEY_URL": from.String()})
	b.remove("service_instances/i/service_bindings/b", service, plan)
	if err := enter(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a login after the unbind: %v", err)
	}
	b.remove("service_instances/i", service, plan)
}

// A URL of Valkey that cannot be meant is refused, and never repeated.
func TestValkeySettings(t *testing.T) {
	t.Parallel()
	for given, says := range map[string]string{
		"redis://u:canary@h": "", "valkey://u:canary@h": "", "rediss://u:canary@h:7": "", "valkeys://u:canary@h": "",
		"redis://u:canary@h?sslmode=verify-full": "",
		"rediss://u:canary@h?sslmode=require":    "give one of disable, verify-full",
		"redis://u:canary@h/1":                   "names a database",
		"redis://:canary@h":                      "names no user",
		"postgresql://u:canary@h":                "does not begin with redis://",
		"embedded":                               "the broker has no such server of its own",
	} {
		_, err := embedded.Settings{Listen: ":0", Data: "d",
			Servers: map[string]string{"valkey": given}}.Complete(func(string) string { return "" })
		if (err == nil) != (says == "") || !strings.Contains(fmt.Sprint(err), says) ||
			strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: %v, want %q", given, err, says)
		}
	}
}
