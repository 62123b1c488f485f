package hosted_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testserver"
)

var (
	withDatabases = hosted.AddressForm{
		Schemes: map[string]string{"engine": "", "engines": hosted.TLSVerify.String()}, Example: "engine://login:password@host:1/main", Port: 1,
		Databases: true, Names: []string{"engine"},
	}
	withoutDatabases = hosted.AddressForm{
		Schemes: map[string]string{"cache": ""}, Example: "cache://login:password@host:2", Port: 2, Verifies: true,
	}
)

// newAuthority is a certificate in PEM.
func newAuthority(t *testing.T) string {
	t.Helper()
	return string(expect.Get(testserver.NewCertificates())(t).Authority)
}

func TestURLs(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := newAuthority(t)
	expect.OK(t, os.WriteFile(ca, []byte(certificate), 0o600))
	base := hosted.Access{Host: "h", Port: 1, User: "u", Password: "p", Database: "u", TLS: hosted.TLSVerify}
	with := func(change func(a *hosted.Access)) hosted.Access {
		a := base
		change(&a)
		return a
	}
	for raw, want := range map[string]hosted.Access{
		"engine://u:p@h":                base,
		"engine://u:p@h/":               base,
		"engine://u:p@h:7/d":            with(func(a *hosted.Access) { a.Port, a.Database = 7, "d" }),
		"engine://u@h":                  with(func(a *hosted.Access) { a.Password = "" }),
		"engine://u:p@[::1]:7/":         with(func(a *hosted.Access) { a.Host, a.Port, a.TLS = "::1", 7, hosted.TLSDisable }),
		"engine://u:p@[fe80::1%25eth0]": with(func(a *hosted.Access) { a.Host = "fe80::1%eth0" }),
		"engine://u%40v:p%2F%23%3A%40%25@h/d%20e": with(func(a *hosted.Access) {
			a.User, a.Password, a.Database = "u@v", "p/#:@%", "d e"
		}),
		"engine://u:p@/d?host=/run/e&public_host=h.example.com&public_port=9": with(func(a *hosted.Access) {
			a.Host, a.Database, a.TLS, a.PublicHost, a.PublicPort = "/run/e", "d", hosted.TLSDisable, "h.example.com", 9
		}),
		"engine://u:p@localhost":                           with(func(a *hosted.Access) { a.Host, a.TLS = "localhost", hosted.TLSDisable }),
		"engine://u:p@localhost?sslmode=require":           with(func(a *hosted.Access) { a.Host, a.TLS = "localhost", hosted.TLSRequire }),
		"engine://u:p@h?sslmode=disable":                   with(func(a *hosted.Access) { a.TLS = hosted.TLSDisable }),
		"engine://u:p@h?sslmode=require":                   with(func(a *hosted.Access) { a.TLS = hosted.TLSRequire }),
		"engine://u:p@h?sslmode=verify-full":               with(func(a *hosted.Access) { a.TLS = hosted.TLSVerify }),
		"engine://u:p@h?sslrootcert=system":                with(func(a *hosted.Access) { a.TLS = hosted.TLSVerify }),
		"engines://u:p@h":                                  with(func(a *hosted.Access) { a.TLS = hosted.TLSVerify }),
		"engine://u:p@h?sslmode=require&sslrootcert=" + ca: with(func(a *hosted.Access) { a.TLS, a.CA = hosted.TLSVerify, certificate }),
	} {
		expect.Same(t, raw, want, expect.Get(hosted.ParseURL("--engine", raw, withDatabases))(t, raw))
	}
	want := hosted.Access{Host: "h", Port: 2, User: "u", Password: "p", TLS: hosted.TLSVerify} // of an engine that verifies
	expect.Same(t, "without databases", want, expect.Get(hosted.ParseURL("--cache", "cache://u:p@h/", withoutDatabases))(t))
	secret := []byte(`{"host":"h","username":"u","password":"p"}`)
	expect.Same(t, "a secret", want, expect.Get(hosted.ParseSecret("secret", secret, withoutDatabases))(t))
}

// A refusal names the mistake and its remedy, and never repeats the URL.
func TestURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "no.pem")
	expect.OK(t, os.WriteFile(file, []byte("none"), 0o600))
	for raw, says := range map[string]string{
		"engine://u:canary/@h":                                   "%40 for @",
		"engine://u:canary#@h":                                   "%40 for @",
		"engine://u:canary%zz@h":                                 "%40 for @",
		"engine://u:canary@%2Frun%2Fe":                           "?host=",
		"engine://u:canary@h1:1,h2:2/d":                          "several hosts",
		"engine://u:canary@h1,h2/d":                              "several hosts",
		"canary":                                                 "does not begin with engine:// or engines://",
		"engine:u:canary@h":                                      "parts",
		"http://u:canary@h":                                      "does not begin",
		"engine://:canary@h":                                     "names no user",
		"engine://h":                                             "names no user",
		"engine://u:canary@":                                     "names no host",
		"engine://u:canary@h?host=/run":                          "two hosts",
		"engine://u:canary@?host=h":                              "not a folder",
		"engine://u:canary@h:0":                                  "port",
		"engine://u:canary@h:65536":                              "port",
		"engine://u:canary@h?public_port=x":                      "public_port",
		"engine://u:canary@h/a/b":                                "names a database",
		"engine://u:canary@h?sslmode=verify-ca":                  "unknown sslmode",
		"engine://u:canary@h?sslmode=":                           "empty, or two",
		"engine://u:canary@h?sslmode=a&sslmode=":                 "empty, or two",
		"engine://u:canary@h?a=canary":                           `unknown "a"`,
		"engine://u:canary@h?a=%zz":                              "cannot be read behind",
		"engine://u:canary@h?sslrootcert=/absent/file":           "cannot be read",
		"engine://u:canary@h?sslrootcert=" + file:                "PEM",
		"engine://u:canary@h?sslmode=disable&sslrootcert=system": "leave out one",
		"engine://u:canary@?host=/run&sslrootcert=system":        "Unix socket",
	} {
		_, err := hosted.ParseURL("--engine", raw, withDatabases)
		refused(t, raw, says, err)
	}
	_, err := hosted.ParseURL("--engine", "cache://u:canary@h/0", withoutDatabases)
	refused(t, "a database", "leave out", err)
	_, err = hosted.ParseURL("--engine", "cache://u:canary@h?sslmode=require", withoutDatabases)
	refused(t, "TLS that verifies nothing", "give one of disable, verify-full", err)
}

func refused(t *testing.T, what, says string, err error) {
	t.Helper()
	var r *advice.Error
	if !errors.As(err, &r) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "canary") {
		t.Errorf("%s: want a remedy that says %q, got %v", what, says, err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	certificate := newAuthority(t)
	for raw, want := range map[string]hosted.Access{
		`{"engine":"engine","host":"h","port":7,"username":"u","password":"p","dbname":"d","dbInstanceIdentifier":"i"}`: {
			Host: "h", Port: 7, User: "u", Password: "p", Database: "d", TLS: hosted.TLSVerify},
		`{"host":"h","port":"7","username":"u","password":"p","sslmode":"require","public_host":"x","public_port":9}`: {
			Host: "h", Port: 7, User: "u", Password: "p", Database: "u", TLS: hosted.TLSRequire, PublicHost: "x", PublicPort: 9},
		`{"host":"h","username":"u","password":"p","ca":"` + strings.ReplaceAll(certificate, "\n", `\n`) + `"}`: {
			Host: "h", Port: 1, User: "u", Password: "p", Database: "u", TLS: hosted.TLSVerify, CA: certificate},
	} {
		expect.Same(t, raw, want, expect.Get(hosted.ParseSecret("secret", []byte(raw), withDatabases))(t, raw))
	}
	for raw, says := range map[string]string{
		`canary`: "in the form that RDS writes",
		`{"host":"h","port":"canary","username":"u","password":"p"}`:       "in the form that RDS writes",
		`{"host":"h","port":0,"username":"u","password":"canary"}`:         "port",
		`{"engine":"mysql","host":"h","username":"u","password":"canary"}`: "another engine",
		`{"username":"u","password":"canary"}`:                             "has no host",
		`{"host":"h","username":"u","password":"canary","ca":"canary"}`:    "PEM",
	} {
		_, err := hosted.ParseSecret("secret", []byte(raw), withDatabases)
		refused(t, raw, says, err)
	}
}
