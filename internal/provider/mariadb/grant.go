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
func grantOf(access hosted.Access, tls bool, now standing, password string) *provider.Grant {
	name, login := now.name, now.logins[0].name
	host, port := access.Public()
	mode := access.TLS
	switch {
	case !tls:
		mode = hosted.TLSDisable
	case mode != hosted.TLSVerify:
		mode = hosted.TLSRequire
	}
	at := net.JoinHostPort(host, strconv.Itoa(port))
	uri := url.URL{Scheme: "mysql", User: url.UserPassword(login, password), Host: at, Path: "/" + name}
	if word := uriModes[mode]; word != "" {
		uri.RawQuery = url.Values{"ssl-mode": {word}}.Encode()
	}
	jdbc := url.Values{"user": {login}, "password": {password}, "sslMode": {jdbcModes[mode]}}
	credentials := map[string]any{
		"type": hosted.TypeMySQL, "database": name,
		"uri": uri.String(), "jdbcUrl": "jdbc:mariadb://" + at + "/" + name + "?" + jdbc.Encode(),
		"host": host, "port": port, "name": name, "username": login, "password": password, "sslmode": mode.String(),
	}
	if access.CA != "" && mode == hosted.TLSVerify {
		credentials["ca"] = access.CA
	}
	return &provider.Grant{Credentials: credentials}
}
