package conformance

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
)

// variable matches the names in paths and bodies.
var variable = regexp.MustCompile(`\$[a-z]+[0-9]?`)

// known returns a value that was captured or made before.
func (s *scene) known(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[name]
	return v, ok
}

func (s *scene) remember(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
}

// value returns the value of $name: an id of the catalog, a value of the last answers (operation,
// location, etag), or an id that is made when it is first used.
func (s *scene) value(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[name]; ok {
		return v
	}
	v := newID()
	if name == "login" {
		v = base64.StdEncoding.EncodeToString([]byte(s.target.Username + ":" + s.target.Password))
	}
	if p := s.plan; p != nil {
		switch name {
		case "service":
			v = p.service.id
		case "plan":
			v = p.id
		case "otherplan":
			v = p.sibling().id
		case "laterplan":
			v = p.later().id
		case "foreignplan":
			v = p.foreign().id
		case "foreignservice":
			v = p.foreign().service.id
		case "maintenance":
			v = p.maintenance
		}
	}
	s.values[name] = v
	return v
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-4" + x[13:16] + "-8" + x[17:20] + "-" + x[20:]
}

// text replaces the names in a text.
func (s *scene) text(t string) string {
	return variable.ReplaceAllStringFunc(t, func(name string) string { return s.value(name[1:]) })
}

// unnamed matches the part of a query that names the operation.
var unnamed = regexp.MustCompile(`[?&]operation=\$operation`)

// address replaces the names in a path. It removes the operation from the query if the broker gave no token.
func (s *scene) address(path string) string {
	if _, ok := s.known("operation"); !ok {
		path = unnamed.ReplaceAllString(path, "")
	}
	return variable.ReplaceAllStringFunc(path, func(name string) string {
		if name == "$location" {
			return s.value("location")
		}
		return url.QueryEscape(s.value(name[1:]))
	})
}

// fill replaces the names in a JSON value.
func (s *scene) fill(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.fill(v[i])
		}
		return out
	case object:
		out := object{}
		for name, member := range v {
			out[name] = s.fill(member)
		}
		return out
	default:
		return v
	}
}
