package hosted

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A TLS is how the broker and users connect to a server. The zero value verifies the server.
type TLS uint8

// The modes, by the names of PostgreSQL's sslmode.
const (
	TLSVerify  TLS = iota // encrypted, with the server that the certificate names
	TLSRequire            // encrypted, with any server that answers
	TLSDisable            // not encrypted
)

var tlsNames = []string{TLSVerify: "verify-full", TLSRequire: "require", TLSDisable: "disable"}

func (t TLS) String() string { return tlsNames[t] }

// MarshalText implements encoding.TextMarshaler.
func (t TLS) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *TLS) UnmarshalText(name []byte) error {
	i := slices.Index(tlsNames, string(name))
	if i < 0 {
		return fmt.Errorf("there is no TLS mode %q: the modes are %s", name, strings.Join(tlsNames, ", "))
	}
	*t = TLS(i)
	return nil
}

// TLSConfig returns the configuration of a connection's encryption; nil for a connection that is
// not encrypted.
func (a Access) TLSConfig() (*tls.Config, error) {
	if a.TLS == TLSDisable {
		return nil, nil
	}
	config := &tls.Config{ServerName: a.Host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.TLS == TLSRequire}
	if a.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(a.CA)) {
			return nil, errors.New("the server's CA is not a certificate in PEM: give it again in the settings")
		}
	}
	return config, nil
}
