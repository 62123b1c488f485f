// Package testserver starts the servers that tests run on, so that each ends with its test process, however that
// ends. It finds what make installed and free ports, and has the guard beside a server, and certificates. The
// packages of each kind of server configure it.
package testserver

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
)

// Loopback is where servers of tests listen.
const Loopback = "127.0.0.1"

// Installed is the place of what make installs, by its path from the repository's root,
// where the Makefile is. Whether it is there is not looked at.
func Installed(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil {
			return filepath.Join(dir, filepath.FromSlash(path)), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the repository's root is not above the tests")
		}
		dir = parent
	}
}

// FreePort is one that is free at this moment: who starts on it may find it taken
// after all, and then tries another.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", Loopback+":0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// Tail is the end of what a server has said in its log.
func Tail(path string) string {
	said, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(said[max(0, len(said)-most):])
}

// Certificates are a server's on this machine, by an authority of its own, in PEM.
type Certificates struct{ Authority, Server, Key []byte }

// NewCertificates makes some, valid for a day.
func NewCertificates() (c Certificates, err error) {
	certificate := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		}
	}
	ca, own := certificate(1, "longshore test"), certificate(2, "localhost")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	own.DNSNames, own.IPAddresses = []string{"localhost"}, []net.IP{net.ParseIP(Loopback)}
	own.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	caKey, errCA := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ownKey, errOwn := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(errCA, errOwn); err != nil {
		return c, err
	}
	caDER, errCA := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	ownDER, errOwn := x509.CreateCertificate(rand.Reader, own, ca, ownKey.Public(), caKey)
	keyDER, errKey := x509.MarshalPKCS8PrivateKey(ownKey)
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	c = Certificates{block("CERTIFICATE", caDER), block("CERTIFICATE", ownDER), block("PRIVATE KEY", keyDER)}
	return c, errors.Join(errCA, errOwn, errKey)
}
