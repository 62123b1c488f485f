package osb

import (
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

// A pattern is a route: literal segments, and wildcards that are identifiers.
// Routing is done on the escaped path, so that an encoded slash stays inside
// its identifier (INP-11), and nothing is cleaned or redirected (INP-19).
type pattern struct {
	name     string // for the log
	segments []string
	methods  map[string]handler
}

const wildcard = "*"

var patterns = []pattern{
	{"catalog", []string{"v2", "catalog"}, map[string]handler{http.MethodGet: (*Server).getCatalog}},
	{"instance", []string{"v2", "service_instances", wildcard}, map[string]handler{
		http.MethodPut: (*Server).provision, http.MethodPatch: (*Server).update,
		http.MethodDelete: (*Server).deprovision, http.MethodGet: (*Server).getInstance,
	}},
	{"instance last operation", []string{"v2", "service_instances", wildcard, "last_operation"}, map[string]handler{
		http.MethodGet: (*Server).lastOperation,
	}},
	{"binding", []string{"v2", "service_instances", wildcard, "service_bindings", wildcard}, map[string]handler{
		http.MethodPut: (*Server).bind, http.MethodDelete: (*Server).unbind, http.MethodGet: (*Server).getBinding,
	}},
	{"binding last operation", []string{"v2", "service_instances", wildcard, "service_bindings", wildcard, "last_operation"},
		map[string]handler{
			http.MethodGet: (*Server).lastOperation,
		}},
	{"operation", []string{"operations", wildcard}, map[string]handler{
		http.MethodGet: (*Server).getOperation, http.MethodDelete: (*Server).cancelOperation,
	}},
}

func (p pattern) match(segments []string) bool {
	if len(segments) != len(p.segments) {
		return false
	}
	for i, s := range p.segments {
		if s != wildcard && s != segments[i] {
			return false
		}
	}
	return true
}

// A route is where a request's path leads. In the log it is its name: identifiers
// are left out.
type route struct {
	pattern
	found []string // the segments of the path
}

// find gives the pattern that a request's path matches; none without methods.
func find(r *http.Request) route {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, p := range patterns {
		if p.match(segments) {
			return route{p, segments}
		}
	}
	return route{pattern: pattern{name: "unknown"}}
}

// withoutPrefix takes a platform's own path away from before the API's paths.
// Whether it is the platform's is seen once it is known who asks.
func withoutPrefix(r *http.Request) (prefix string, _ *http.Request) {
	path := r.URL.EscapedPath()
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	next, _, _ := strings.Cut(rest, "/")
	if first == "v2" || first == "operations" || next != "v2" && next != "operations" || platforms.CheckPath("/"+first) != nil {
		return "", r
	}
	out := r.Clone(r.Context())
	out.URL.RawPath = strings.TrimPrefix(path, "/"+first)
	out.URL.Path, _ = url.PathUnescape(out.URL.RawPath) // it was valid in the whole
	return "/" + first, out
}

// route finds the handler, and decodes the identifiers of the path.
func (s *Server) route(c *call) (handler, error) {
	p, segments := c.at.pattern, c.at.found
	if p.methods == nil {
		return nil, lifecycle.Refuse(lifecycle.NotFound, "This broker has no such path; its API begins at /v2/catalog.")
	}
	h, ok := p.methods[c.Method]
	if !ok {
		allow := make([]string, 0, len(p.methods))
		for m := range p.methods {
			allow = append(allow, m)
			if m == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
		slices.Sort(allow)
		return nil, &methodNotAllowed{allow: strings.Join(allow, ", ")}
	}
	at := 0
	for i, want := range p.segments {
		if want != wildcard {
			continue
		}
		if segments[i] == "" {
			return nil, lifecycle.Refuse(lifecycle.NotFound, "The path has an empty identifier.")
		}
		id, err := url.PathUnescape(segments[i])
		switch {
		case err != nil || !utf8.ValidString(id):
			return nil, lifecycle.Refuse(lifecycle.BadRequest,
				"An identifier in the path is not valid percent-encoded UTF-8 text.")
		case strings.ContainsFunc(id, unicode.IsControl):
			return nil, lifecycle.Refuse(lifecycle.BadRequest,
				"An identifier in the path has a control character, which none may have.")
		case id == "." || id == "..":
			// Clients and proxies take such a segment out of a path, encoded or
			// not: a later DELETE of the id would be one of something else.
			return nil, lifecycle.Refuse(lifecycle.BadRequest, "An identifier in the path must not be . or .. alone.")
		case p.name != "operation" && len(id) > limits.Identifier:
			return nil, lifecycle.Refuse(lifecycle.BadRequest, "An identifier in the path is longer than %d bytes.",
				limits.Identifier)
		}
		c.ids[at] = id
		at++
	}
	return h, nil
}

// instanceID and bindingID are the identifiers of the path.
func (c *call) instanceID() string { return c.ids[0] }
func (c *call) bindingID() string  { return c.ids[1] }

func (c *call) key() lifecycle.Key {
	return lifecycle.Key{Platform: c.Platform, Instance: c.instanceID(), Binding: c.bindingID()}
}
