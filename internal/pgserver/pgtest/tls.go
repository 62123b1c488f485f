package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/longshore/longshore/internal/pgserver"
)

// certify makes an authority and the server's certificate by it, and gives the
// authority's in PEM.
func (s *server) certify() (string, error) {
	certificate := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		}
	}
	ca, own := certificate(1, "longshore test"), certificate(2, "localhost")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	own.DNSNames, own.IPAddresses = []string{"localhost"}, []net.IP{net.ParseIP(pgserver.Loopback)}
	own.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	caKey, errCA := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ownKey, errOwn := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(errCA, errOwn); err != nil {
		return "", err
	}
	caDER, errCA := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	ownDER, errOwn := x509.CreateCertificate(rand.Reader, own, ca, ownKey.Public(), caKey)
	keyDER, errKey := x509.MarshalPKCS8PrivateKey(ownKey)
	if err := errors.Join(errCA, errOwn, errKey); err != nil {
		return "", err
	}
	files := map[string][]byte{"ssl_cert_file": block("CERTIFICATE", ownDER), "ssl_key_file": block("PRIVATE KEY", keyDER)}
	s.cluster.Settings = append(s.cluster.Settings, "ssl=on")
	for setting, text := range files {
		path := filepath.Join(s.cluster.Data, setting)
		if err := errors.Join(os.WriteFile(path, text, 0o600), s.cluster.Account.Give(path)); err != nil {
			return "", err
		}
		s.cluster.Settings = append(s.cluster.Settings, setting+"="+path)
	}
	return string(block("CERTIFICATE", caDER)), nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
