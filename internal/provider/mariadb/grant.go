package mariadb

import (
	"net"
	"net/url"
	"strconv"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// How drivers are told to use TLS: the word of MySQL's clients, and of MariaDB's
// for Java.
var (
	uriModes  = map[hosted.TLS]string{hosted.TLSRequire: "REQUIRED", hosted.TLSVerify: "VERIFY_IDENTITY"}
	jdbcModes = map[hosted.TLS]string{hosted.TLSDisable: "disable", hosted.TLSRequire: "trust", hosted.TLSVerify: "verify-full"}
)

// grantOf is what a binding gives.
func grantOf(access hosted.Access, n names, password string) *provider.Grant {
	host, port := access.Public()
	mode := access.TLS
	at := net.JoinHostPort(host, strconv.Itoa(port))
	uri := url.URL{Scheme: "mysql", User: url.UserPassword(n.login, password), Host: at, Path: "/" + n.database}
	if word := uriModes[mode]; word != "" {
		uri.RawQuery = url.Values{"ssl-mode": {word}}.Encode()
	}
	jdbc := url.Values{"user": {n.login}, "password": {password}, "sslMode": {jdbcModes[mode]}}
	credentials := map[string]any{
		"type": hosted.TypeMySQL, "database": n.database,
		"uri": uri.String(), "jdbcUrl": "jdbc:mariadb://" + at + "/" + n.database + "?" + jdbc.Encode(),
		"host": host, "port": port, "name": n.database, "username": n.login, "password": password, "sslmode": mode.String(),
	}
	if access.CA != "" && mode == hosted.TLSVerify {
		credentials["ca"] = access.CA
	}
	return &provider.Grant{Credentials: credentials}
}
