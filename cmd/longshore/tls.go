package main

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
)

// A keyPair is a certificate with its key, in two files that are read again once they have changed. It
// checks them at each handshake: a program that renews certificates may replace the files, or their folder.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	changed [2]time.Time
	pair    *tls.Certificate
}

// safety returns the TLS configuration of a server; nil for plain HTTP, if neither file is given.
func safety(cert, key string, log *slog.Logger) (scheme string, _ *tls.Config, _ error) {
	switch {
	case cert == "" && key == "":
		return "http://", nil, nil
	case cert == "" || key == "":
		return "", nil, advice.For("--tls-cert and --tls-key", "only one of them is given",
			"give both, or neither for plain HTTP")
	}
	k := &keyPair{cert: cert, key: key, log: log}
	if err := k.load(); err != nil {
		return "", nil, fmt.Errorf("the certificate of --tls-cert and the key of --tls-key cannot be used: "+
			"give PEM files that belong together and that the broker may read: %w", err)
	}
	return "https://", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.newest}, nil
}

// newest returns the pair for a handshake.
func (k *keyPair) newest(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(); err != nil {
		k.log.Error("the certificate has changed and cannot be used: the previous one stays in use", "certificate", k.cert,
			"error", err)
	}
	return k.pair, nil
}

// serveOn serves until the server is shut down.
func serveOn(server *http.Server, listener net.Listener) error {
	if server.TLSConfig == nil {
		return server.Serve(listener)
	}
	return server.ServeTLS(listener, "", "")
}

// load reads the pair if a file has changed since load last looked. A changed file that cannot be
// used is not read again: the error is returned once.
func (k *keyPair) load() error {
	var changed [2]time.Time
	var mode fs.FileMode
	for n, path := range []string{k.cert, k.key} {
		if info, err := os.Stat(path); err == nil {
			changed[n], mode = info.ModTime(), info.Mode()
		}
	}
	if changed == k.changed && k.pair != nil {
		return nil
	}
	k.changed = changed
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil {
		return err
	}
	if mode.Perm()&0o007 != 0 {
		k.log.Warn("every user of this machine may read the key of the broker's certificate: run chmod o= on it", "key", k.key)
	}
	if k.pair != nil {
		k.log.Info("the certificate has changed", "certificate", k.cert, "until", pair.Leaf.NotAfter)
	}
	k.pair = &pair
	return nil
}
