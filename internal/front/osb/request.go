package osb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
)

// maxDrain is how much of a body that is too large is read and thrown away, so
// that the client reads the answer rather than a reset.
const maxDrain = 16 << 20

var (
	errTooLarge     = lifecycle.Refuse(lifecycle.TooLarge, "The request body is larger than %d bytes.", limits.Body)
	errUnauthorized = lifecycle.Refuse(lifecycle.Unauthorized, "The user name or the password is wrong or missing.")
)

// innermost is the server's own writer, whatever stands before it: told of a body
// that is too large, net/http lets the client read the answer before it resets
// the connection.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		around, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = around.Unwrap()
	}
}

func drain(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(innermost(w), r.Body, maxDrain))
}

// parse checks the syntax of the request: query, body, types (step 5).
func (s *Server) parse(ctx context.Context, w http.ResponseWriter, c *call) error {
	if isPoll(c) { // all that it reads of the query is a hint
		return nil
	}
	var err error
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return lifecycle.Refuse(lifecycle.BadRequest, "The query of the URL is malformed.")
	}
	if c.Method != http.MethodGet { // which begins nothing that is kept
		if err := checkIdentity(c.Request); err != nil {
			return err
		}
		var readable bool
		if c.Asker, c.Identity, readable = asker(c.Request); !readable {
			s.Log.WarnContext(ctx, "originating identity cannot be read and is left out", "route", c.at.name)
		}
	}
	if c.Method == http.MethodPut || c.Method == http.MethodPatch {
		if c.body, err = readObject(w, c.Request); err != nil {
			return err
		}
	}
	c.AcceptsIncomplete, err = c.acceptsIncomplete()
	if c.bindingID() != "" && !c.version.knows(asynchronousBindings) {
		c.AcceptsIncomplete = false
	}
	return err
}

func isPoll(c *call) bool { return strings.HasSuffix(c.at.name, "last operation") }

// hint is a parameter of a poll's query, as url.ParseQuery has it. Whatever else is
// wrong with the query, polls are never refused for what is only a hint: platforms
// take 400 there for the failure of the operation (INP-05).
func (c *call) hint(name string) string {
	for rest := c.URL.RawQuery; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		key, value, _ := strings.Cut(pair, "=")
		if strings.Contains(pair, ";") {
			continue
		}
		if key, err := url.QueryUnescape(key); err != nil || key != name {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value
		}
	}
	return ""
}

// acceptsIncomplete reads the client's permission: the query decides, and the
// body where the query is silent (INP-09, INP-10).
func (c *call) acceptsIncomplete() (bool, error) {
	const name = "accepts_incomplete"
	if c.Method == http.MethodGet {
		return false, nil
	}
	switch values := c.query[name]; {
	case len(values) == 1 && values[0] == "true":
		return true, nil
	case len(values) == 1 && values[0] == "false":
		return false, nil
	case len(values) > 0:
		return false, lifecycle.Refuse(lifecycle.BadRequest,
			"The query parameter accepts_incomplete must be true or false, and given once.")
	}
	raw, ok := c.body.member(name)
	if !ok {
		return false, nil
	}
	var permitted bool
	if json.Unmarshal(raw, &permitted) != nil {
		return false, wrongType(name, "a boolean")
	}
	return permitted, nil
}

// An object is a JSON object whose member names are compared exactly; unknown
// ones are never looked at (INP-06).
type object map[string]json.RawMessage

func readObject(w http.ResponseWriter, r *http.Request) (object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(innermost(w), r.Body, limits.Body))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		drain(w, r)
		return nil, errTooLarge
	}
	if err != nil {
		return nil, lifecycle.Refuse(lifecycle.BadRequest, "The request body could not be read to its end.")
	}
	if !utf8.Valid(body) {
		return nil, lifecycle.Refuse(lifecycle.BadRequest, "The request body is not valid UTF-8.")
	}
	if tooDeep(body) {
		return nil, lifecycle.Refuse(lifecycle.BadRequest, "The request body is nested more than %d levels deep.", limits.Depth)
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil || o == nil {
		return nil, lifecycle.Refuse(lifecycle.BadRequest, "The request body must be one JSON object.")
	}
	return o, nil
}

// tooDeep counts the levels of what may or may not be JSON (INP-15).
func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limits.Depth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// member gives a member that is there and not null: null is as absent
// (INP-07).
func (o object) member(name string) (json.RawMessage, bool) {
	raw, ok := o[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil, false
	}
	return raw, true
}

// text reads an optional string; one that is there is not empty (INP-05).
func (o object) text(name string) (string, error) {
	raw, ok := o.member(name)
	if !ok {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", wrongType(name, "a string")
	}
	if s == "" {
		return "", lifecycle.Refuse(lifecycle.BadRequest, "The member %s must not be empty.", name)
	}
	return s, within(name, len(s), limits.Identifier)
}

// emptied reads an optional string which is as absent when it is empty: clients
// that are written in Go send such members always (INP-05).
func (o object) emptied(name string) (string, error) {
	if string(o[name]) == `""` {
		return "", nil
	}
	return o.text(name)
}

// required reads a string that must be there (INP-04).
func (o object) required(name string) (string, error) {
	s, err := o.text(name)
	if err == nil && s == "" {
		return "", lifecycle.Refuse(lifecycle.BadRequest, "The member %s is required.", name)
	}
	return s, err
}

// object reads an optional object as it came.
func (o object) object(name string) (json.RawMessage, error) {
	raw, ok := o.member(name)
	if !ok {
		return nil, nil
	}
	if !isObject(raw) {
		return nil, wrongType(name, "an object")
	}
	return raw, nil
}

// members reads the members of an optional object.
func (o object) members(name string) (object, error) {
	raw, err := o.object(name)
	if raw == nil || err != nil {
		return nil, err
	}
	var members object
	if json.Unmarshal(raw, &members) != nil {
		return nil, wrongType(name, "an object")
	}
	return members, nil
}

// isObject reports whether a valid JSON value is an object.
func isObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// bounded reads an optional object of so many bytes at most.
func (o object) bounded(name string, most int) (json.RawMessage, error) {
	raw, err := o.object(name)
	if err == nil {
		err = within(name, len(raw), most)
	}
	return raw, err
}

// parameters reads the user's parameters.
func (o object) parameters() (json.RawMessage, error) {
	return o.bounded("parameters", limits.Parameters)
}

// context reads the platform's context.
func (o object) context() (json.RawMessage, error) { return o.bounded("context", limits.Context) }

// within refuses a member that has more bytes than a record may hold of it.
func within(name string, length, most int) error {
	if length > most {
		return lifecycle.Refuse(lifecycle.BadRequest, "The member %s is larger than %d bytes.", name, most)
	}
	return nil
}

// maintenance reads maintenance_info.version for clients that know it. An empty
// object is as none (CLI-04).
func (o object) maintenance(v version) (*string, error) {
	if !v.knows(maintenanceInfo) {
		return nil, nil
	}
	info, err := o.members("maintenance_info")
	if err != nil || len(info) == 0 {
		return nil, err
	}
	version, err := info.text("version")
	if err != nil || version == "" {
		return nil, lifecycle.Refuse(lifecycle.BadRequest,
			"The member maintenance_info.version must be a string that is not empty.")
	}
	return &version, nil
}

func wrongType(name, want string) error {
	return lifecycle.Refuse(lifecycle.BadRequest, "The member %s must be %s.", name, want)
}
