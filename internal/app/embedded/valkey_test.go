package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// A server behind TLS, by rediss:// and its certificate: apps get in with what they are given, until the unbind. Without the URL
// the offering stays, as there is an instance.
func TestValkeyByTLS(t *testing.T) {
	t.Parallel()
	server := valkeytest.Start(t, "app")
	access := server.Access()
	port, ca := server.TLS(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	expect.OK(t, os.WriteFile(file, []byte(ca), 0o600))
	from := url.URL{Scheme: "rediss", User: url.UserPassword(access.User, access.Password),
		Host: fmt.Sprintf("%s:%d", access.Host, port), RawQuery: url.Values{"sslrootcert": {file}}.Encode()}
	given := map[string]string{"LONGSHORE_VALKEY_URL": from.String()}
	h := newHistory(t)
	h.start(given)
	service, plan, _ := h.offers("valkey", "shared")
	h.provision("i", service, plan)
	got := h.bind("i/service_bindings/b", service, plan)
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

	h.start(nil)
	if _, _, offers := h.offers("valkey", "shared"); !offers {
		t.Error("an offering with an instance has gone")
	}
	h.start(given)
	h.remove("i/service_bindings/b", service, plan)
	expect.Says(t, "a login after the unbind", fmt.Sprint(enter()), "WRONGPASS")
	h.remove("i", service, plan)
}
