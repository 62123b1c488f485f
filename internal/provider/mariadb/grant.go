package mariadb

import (
	"maps"
	"net/url"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// The words that tell drivers how to use TLS: those of MySQL's clients, and those of MariaDB's driver for
// Java.
var (
	uriModes  = map[hosted.TLS]string{hosted.TLSRequire: "REQUIRED", hosted.TLSVerify: "VERIFY_IDENTITY"}
	jdbcModes = map[hosted.TLS]string{hosted.TLSDisable: "disable", hosted.TLSRequire: "trust", hosted.TLSVerify: "verify-full"}
)

// grantOf returns the grant of a binding.
func grantOf(access hosted.Access, n names, password string) *provider.Grant {
	mode := access.TLS
	credentials, at := access.Credentials(hosted.TypeMySQL, n.login, password)
	uri := url.URL{Scheme: "mysql", User: url.UserPassword(n.login, password), Host: at, Path: "/" + n.database}
	if word := uriModes[mode]; word != "" {
		uri.RawQuery = url.Values{"ssl-mode": {word}}.Encode()
	}
	jdbc := url.Values{"user": {n.login}, "password": {password}, "sslMode": {jdbcModes[mode]}}
	maps.Copy(credentials, map[string]any{
		"database": n.database, "name": n.database, "sslmode": mode.String(), "uri": uri.String(),
		"jdbcUrl": "jdbc:mariadb://" + at + "/" + n.database + "?" + jdbc.Encode(),
	})
	return &provider.Grant{Credentials: credentials}
}
