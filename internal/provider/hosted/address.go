package hosted

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

// An AddressForm describes the addresses of an engine's servers.
type AddressForm struct {
	// Schemes maps the schemes of the engine's URLs to the TLS mode that each implies, if any.
	// Example is a URL.
	Schemes map[string]string
	Example string
	Port    int
	// Databases is true for an engine whose logins work in a database: the broker's login in the one
	// of its own name unless the address names another.
	Databases bool
	// Verifies refuses TLSRequire: the engine does not encrypt without verifying the server.
	Verifies bool
	// Names are the names by which secrets call the engine.
	Names []string
}

// The parameters of a URL's query.
const (
	querySSLMode    = "sslmode"
	querySSLRoot    = "sslrootcert"
	queryHost       = "host"
	queryPublicHost = "public_host"
	queryPublicPort = "public_port"
)

// systemRoots stands in place of a file, for the certificates that the system trusts.
const systemRoots = "system"

const viaSocket = "; for a Unix socket, append its folder, as ?host=/run/folder"

const escaping = "; in user names and passwords, write what is neither letter nor digit as %40 for @, %2F for / and so on"

// ParseURL parses the URL of a server. Setting names the place where the URL was given. No error
// repeats the URL, which may contain a password.
func ParseURL(setting, raw string, e AddressForm) (Access, error) {
	wrong := func(what, mend string) (Access, error) { return Access{}, advice.For(setting, what, mend) }
	u, err := url.Parse(raw)
	if err != nil {
		return wrong("is not a URL", "give one such as "+e.Example+escaping+viaSocket)
	}
	usual, known := e.Schemes[u.Scheme]
	switch {
	case !known:
		schemes := strings.Join(slices.Sorted(maps.Keys(e.Schemes)), ":// or ") + "://"
		return wrong("does not begin with "+schemes, "give a URL such as "+e.Example)
	case u.Opaque != "" || u.Fragment != "" || strings.Contains(raw, "#"):
		return wrong("has parts that such a URL does not have", "give one such as "+e.Example+escaping)
	case u.User.Username() == "":
		return wrong("names no user", "give the broker's own login on the server, as in "+e.Example)
	}
	query, err := queryOf(u)
	if err != nil {
		return wrong(err.Error(), "after ?, give only "+strings.Join(queries, ", "))
	}
	a := Access{Host: cmp.Or(u.Hostname(), query[queryHost]), Port: e.Port, User: u.User.Username()}
	a.Password, _ = u.User.Password()
	switch {
	case a.Host == "":
		return wrong("names no host", "give a URL such as "+e.Example+viaSocket)
	case u.Hostname() != "" && query[queryHost] != "":
		return wrong("names two hosts", "leave out the one behind ?")
	case strings.Contains(a.Host, ","):
		return wrong("names several hosts", "give the one that takes writes")
	}
	if a.Port, err = portOf(u.Port(), e.Port); err != nil {
		return wrong("has an invalid port", "give one from 1 to 65535")
	}
	if a.PublicPort, err = portOf(query[queryPublicPort], 0); err != nil {
		return wrong("has a "+queryPublicPort+" that is none", "give one from 1 to 65535")
	}
	a.PublicHost = query[queryPublicHost]
	if name := strings.Trim(u.Path, "/"); name != "" {
		if !e.Databases || strings.Contains(name, "/") {
			return wrong("names a database", "leave out what follows the port")
		}
		a.Database = name
	}
	root := query[querySSLRoot]
	if root != "" && root != systemRoots {
		pem, err := os.ReadFile(root)
		if err != nil {
			return Access{}, &advice.Error{Name: setting, What: "names a " + querySSLRoot + " that cannot be read",
				Remedy: "name a file of certificates in PEM that the broker may read", Cause: err}
		}
		a.CA = string(pem)
	}
	return a.completed(setting, cmp.Or(query[querySSLMode], usual), root == systemRoots, e)
}

var queries = []string{queryHost, queryPublicHost, queryPublicPort, querySSLMode, querySSLRoot}

// queryOf parses the query of a URL.
func queryOf(u *url.URL) (map[string]string, error) {
	given, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("cannot be read behind ?")
	}
	query := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(queries, name) {
			return nil, fmt.Errorf("has an unknown %q behind ?", name)
		}
		if len(given[name]) != 1 || given[name][0] == "" {
			return nil, fmt.Errorf("has a %s behind ? that is empty, or two of them", name)
		}
		query[name] = given[name][0]
	}
	if host := query[queryHost]; host != "" && !path.IsAbs(host) {
		return nil, errors.New("has a host after ? that is not a folder of a Unix socket")
	}
	return query, nil
}

// portOf parses a port.
func portOf(text string, unset int) (int, error) {
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && (n < 1 || n > 65535) {
		err = strconv.ErrRange
	}
	return n, err
}

// completed returns the access with its database, and with TLS by the name of a mode. An empty mode
// verifies the server, unless the connection stays on this machine.
func (a Access) completed(setting, mode string, roots bool, e AddressForm) (Access, error) {
	wrong := func(what, mend string) (Access, error) { return Access{}, advice.For(setting, what, mend) }
	if e.Databases {
		a.Database = cmp.Or(a.Database, a.User)
	}
	modes := []string{TLSDisable.String(), TLSRequire.String(), TLSVerify.String()}
	if e.Verifies {
		modes = []string{TLSDisable.String(), TLSVerify.String()}
	}
	verifies := a.CA != "" || roots
	switch {
	case mode != "" && !slices.Contains(modes, mode):
		return wrong("has an unknown "+querySSLMode, "give one of "+strings.Join(modes, ", "))
	case mode == TLSDisable.String() && verifies:
		return wrong("has certificates to verify by, and TLS turned off", "leave out one of them")
	case a.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(a.CA)):
		return wrong("has CA certificates that are not valid", "give them in PEM")
	case a.local() && verifies:
		return wrong("has certificates to verify by, and a Unix socket, which has no TLS", "leave out one of them")
	}
	switch {
	case a.local(), mode == "" && a.here() && !verifies:
		a.TLS = TLSDisable
	case mode != "" && !verifies:
		return a, a.TLS.UnmarshalText([]byte(mode))
	default:
		a.TLS = TLSVerify // which nobody on the way can weaken
	}
	return a, nil
}

// local reports whether a Unix socket leads to the server.
func (a Access) local() bool { return path.IsAbs(a.Host) }

// here reports whether the server is on this machine.
func (a Access) here() bool {
	ip := net.ParseIP(a.Host)
	return a.Host == "localhost" || ip != nil && ip.IsLoopback()
}

// Network returns the network on which the broker reaches the server, in the words of package net.
func (a Access) Network() string {
	if a.local() {
		return "unix"
	}
	return "tcp"
}

// Address returns where the broker reaches the server. It contains no secret.
func (a Access) Address() string {
	if a.local() {
		return a.Host
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// ParseSecret parses a secret of Secrets Manager in the form that RDS writes, with a few members of
// our own. No error repeats what the secret contains.
func ParseSecret(setting string, raw []byte, e AddressForm) (Access, error) {
	wrong := func(what, mend string) (Access, error) { return Access{}, advice.For(setting, what, mend) }
	var s struct {
		Engine     string      `json:"engine"`
		Host       string      `json:"host"`
		Port       json.Number `json:"port"` // a number, or the text of one
		User       string      `json:"username"`
		Password   string      `json:"password"`
		Database   string      `json:"dbname"`
		SSLMode    string      `json:"sslmode"`
		CA         string      `json:"ca"`
		PublicHost string      `json:"public_host"`
		PublicPort json.Number `json:"public_port"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return wrong("does not hold JSON in the form that RDS writes",
			`put {"host": …, "port": …, "username": …, "password": …, "dbname": …} into it`)
	}
	switch {
	case s.Engine != "" && !slices.Contains(e.Names, s.Engine):
		return wrong("is of another engine", "name a secret whose engine is "+strings.Join(e.Names, " or "))
	case s.Host == "" || s.User == "" || s.Password == "":
		return wrong("lacks host, username or password", "put them in: a secret that RDS manages for its master user has no "+
			"host, and the broker needs a login of its own")
	}
	port, err := portOf(s.Port.String(), e.Port)
	public, err2 := portOf(s.PublicPort.String(), 0)
	if err != nil || err2 != nil {
		return wrong("has an invalid port", "give one from 1 to 65535")
	}
	a := Access{Host: s.Host, Port: port, User: s.User, Password: s.Password, Database: s.Database, CA: s.CA,
		PublicHost: s.PublicHost, PublicPort: public}
	return a.completed(setting, s.SSLMode, false, e)
}
