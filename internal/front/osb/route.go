package osb

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A route is a path of the API, in which each * is an identifier, with the handlers of its methods.
// Requests are routed by the segments of their escaped path, so that an encoded slash stays inside its
// identifier (INP-11), and paths are never cleaned or redirected, as the router of net/http would do
// (INP-19).
type route struct {
	name    string // for the log, which must not show identifiers
	path    []string
	methods map[string]handler // always with a GET
}

const (
	instancePath = "v2/service_instances/*"
	bindingPath  = instancePath + "/service_bindings/*"
	polled       = "/last_operation"
)

var routes = []route{
	{"catalog", strings.Split("v2/catalog", "/"), map[string]handler{http.MethodGet: getCatalog}},
	{"instance", strings.Split(instancePath, "/"), map[string]handler{
		http.MethodPut: provision, http.MethodPatch: update,
		http.MethodDelete: deprovision, http.MethodGet: getInstance,
	}},
	{"instance last operation", strings.Split(instancePath+polled, "/"), map[string]handler{
		http.MethodGet: lastOperation,
	}},
	{"binding", strings.Split(bindingPath, "/"), map[string]handler{
		http.MethodPut: bind, http.MethodDelete: remove, http.MethodGet: getBinding,
	}},
	{"binding last operation", strings.Split(bindingPath+polled, "/"), map[string]handler{
		http.MethodGet: lastOperation,
	}},
	{"operation", strings.Split("operations/*", "/"), map[string]handler{
		http.MethodGet: getOperation, http.MethodDelete: cancelOperation,
	}},
}

// find returns the route of a path; one without methods if no route matches.
func find(path []string) route {
	for _, known := range routes {
		if slices.EqualFunc(known.path, path, func(want, got string) bool { return want == "*" || want == got }) {
			return known
		}
	}
	return route{name: "unknown"}
}

// segments returns the escaped segments of a request's path, and the platform's own prefix that stood
// before them. Whether the prefix is that platform's is checked once the platform has logged in.
func segments(r *http.Request) (prefix string, path []string) {
	path = strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if len(path) > 1 && !isRoot(path[0]) && isRoot(path[1]) && platforms.CheckPath("/"+path[0]) == nil {
		return "/" + path[0], path[1:]
	}
	return "", path
}

func isRoot(segment string) bool { return segment == "v2" || segment == "operations" }

// route returns the handler of the request, and decodes the identifiers in the path.
func (c *call) route() (handler, error) {
	if c.at.methods == nil {
		return nil, lifecycle.Refuse(lifecycle.NotFound, "This broker has no such path; its API begins at /v2/catalog.")
	}
	h, ok := c.at.methods[c.Method]
	if !ok {
		methods := slices.Sorted(maps.Keys(c.at.methods))
		allow := strings.Replace(strings.Join(methods, ", "), http.MethodGet, http.MethodGet+", "+http.MethodHead, 1)
		c.also = []header{{"Allow", allow}}
		return nil, lifecycle.Refuse(lifecycle.MethodNotAllowed, "This path does not support the method; it supports %s.", allow)
	}
	named := []*string{&c.key.Instance, &c.key.Binding}
	if c.at.name == "operation" {
		named = []*string{&c.token}
	}
	for i, want := range c.at.path {
		if want != "*" {
			continue
		}
		if c.path[i] == "" {
			return nil, lifecycle.Refuse(lifecycle.NotFound, "The path has an empty identifier.")
		}
		id, err := url.PathUnescape(c.path[i])
		switch {
		case err != nil || !utf8.ValidString(id):
			return nil, malformed("An identifier in the path is not valid percent-encoded UTF-8 text.")
		case strings.ContainsFunc(id, unicode.IsControl):
			return nil, malformed("An identifier in the path has a control character, which none may have.")
		case id == "." || id == "..":
			// Clients and proxies remove such a segment from a path, encoded or not: a later DELETE
			// of this id would delete something else.
			return nil, malformed("An identifier in the path must not be . or .. alone.")
		case named[0] != &c.token && len(id) > limits.Identifier:
			return nil, malformed("An identifier in the path is longer than %d bytes.", limits.Identifier)
		}
		*named[0], named = id, named[1:]
	}
	return h, nil
}
