package pgtest

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/internal/test/testserver"
)

// certify makes an authority and the server's certificate by it, and gives the
// authority's in PEM.
func (s *server) certify() (string, error) {
	made, err := testserver.NewCertificates()
	if err != nil {
		return "", err
	}
	s.cluster.Settings = append(s.cluster.Settings, "ssl=on")
	for setting, text := range map[string][]byte{"ssl_cert_file": made.Server, "ssl_key_file": made.Key} {
		path := filepath.Join(s.cluster.Data, setting)
		if err := errors.Join(os.WriteFile(path, text, 0o600), s.cluster.Account.Give(path)); err != nil {
			return "", err
		}
		s.cluster.Settings = append(s.cluster.Settings, setting+"="+path)
	}
	return string(made.Authority), nil
}
