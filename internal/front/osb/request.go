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

// maxDrain is how many bytes of an oversized body are read and discarded, so that the client reads
// the answer rather than a reset.
const maxDrain = 16 << 20

var (
	errTooLarge     = lifecycle.Refuse(lifecycle.TooLarge, "The request body is larger than %d bytes.", limits.Body)
	errUnauthorized = lifecycle.Refuse(lifecycle.Unauthorized, "The user name or the password is wrong or missing.")
)

// innermost returns net/http's own writer from below all wrappers. When that writer learns that a
// body is too large, it lets the client read the answer before it resets the connection.
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

// parse checks the syntax of the request: its query, its body, and their types (step 5).
func (c *call) parse(ctx context.Context, w http.ResponseWriter) error {
	if strings.HasSuffix(c.at.name, "last operation") { // a poll takes nothing but hints
		return nil
	}
	var err error
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return malformed("The query of the URL is malformed.")
	}
	if c.Method == http.MethodGet { // it changes nothing, so that who asked is not recorded
		return nil
	}
	// An identity may be larger than a record holds. A deletion must get through whatever an audit
	// header holds (OID-03): its identity is left out instead.
	if c.Method != http.MethodDelete && len(c.Header.Get(keptIdentity)) > limits.Identity {
		return malformed("The header %s is larger than %d bytes.", headerIdentity, limits.Identity)
	}
	var readable bool
	if c.Asker, c.Identity, readable = asker(c.Request); !readable {
		c.Log.WarnContext(ctx, "originating identity cannot be read and is left out", "route", c.at.name)
	}
	if c.Method == http.MethodPut || c.Method == http.MethodPatch {
		if c.body, err = readObject(w, c.Request); err != nil {
			return err
		}
	}
	c.AcceptsIncomplete, err = c.acceptsIncomplete()
	if c.key.IsBinding() && c.version < asynchronousBindings {
		c.AcceptsIncomplete = false
	}
	return err
}

// acceptsIncomplete reads whether the client permits an asynchronous answer: the query decides, and
// the body only where the query is silent (INP-09, INP-10).
func (c *call) acceptsIncomplete() (bool, error) {
	const name = "accepts_incomplete"
	switch values := c.query[name]; {
	case len(values) == 1 && values[0] == "true":
		return true, nil
	case len(values) == 1 && values[0] == "false":
		return false, nil
	case len(values) > 0:
		return false, malformed("The query parameter accepts_incomplete must be true or false, and given once.")
	}
	if c.body == nil {
		return false, nil
	}
	var permitted bool
	c.body.read(name, &permitted, "a boolean")
	return permitted, c.body.err
}

// An object is a JSON object whose member names are compared exactly; unknown members are ignored
// (INP-06). Each of its methods reads one member.
type object struct {
	members map[string]json.RawMessage
	err     error // the first violation found; later ones are not kept
}

func readObject(w http.ResponseWriter, r *http.Request) (*object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(innermost(w), r.Body, limits.Body))
	if errors.As(err, new(*http.MaxBytesError)) {
		drain(w, r)
		return nil, errTooLarge
	}
	if err != nil {
		return nil, malformed("The request body could not be read to its end.")
	}
	if !utf8.Valid(body) {
		return nil, malformed("The request body is not valid UTF-8.")
	}
	if tooDeep(body) {
		return nil, malformed("The request body is nested more than %d levels deep.", limits.Depth)
	}
	var o object
	if err := json.Unmarshal(body, &o.members); err != nil || o.members == nil {
		return nil, malformed("The request body must be one JSON object.")
	}
	return &o, nil
}

// tooDeep reports whether a text, which need not be valid JSON, is nested too deeply (INP-15).
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

// refuse records a violation, unless an earlier one is recorded already.
func (o *object) refuse(format string, args ...any) {
	if o.err == nil {
		o.err = malformed(format, args...)
	}
}

// member returns a member that is present and not null: null counts as absent (INP-07).
func (o *object) member(name string) (raw json.RawMessage, found bool) {
	raw, found = o.members[name]
	return raw, found && string(raw) != "null"
}

// read decodes an optional member into a value, and reports whether the member is present.
func (o *object) read(name string, into any, wanted string) bool {
	raw, found := o.member(name)
	if found && json.Unmarshal(raw, into) != nil {
		o.refuse("The member %s must be %s.", name, wanted)
	}
	return found
}

// bound refuses a member that is longer than a record may hold.
func (o *object) bound(name string, length, most int) {
	if length > most {
		o.refuse("The member %s is larger than %d bytes.", name, most)
	}
}

// text reads an optional string, which must not be empty if it is present (INP-05).
func (o *object) text(name string) (s string) {
	if o.read(name, &s, "a string") && s == "" {
		o.refuse("The member %s must not be empty.", name)
	}
	o.bound(name, len(s), limits.Identifier)
	return s
}

// emptied reads an optional string that counts as absent if it is empty: clients written in Go
// always send such members (INP-05).
func (o *object) emptied(name string) string {
	if string(o.members[name]) == `""` {
		return ""
	}
	return o.text(name)
}

// required reads a string that must be present (INP-04).
func (o *object) required(name string) string {
	s := o.text(name)
	if s == "" {
		o.refuse("The member %s is required.", name)
	}
	return s
}

// object returns the raw text of an optional object that has at most the given number of bytes.
func (o *object) object(name string, most int) json.RawMessage {
	raw, found := o.member(name)
	if !found {
		return nil
	}
	if !isObject(raw) {
		o.refuse("The member %s must be an object.", name)
	}
	o.bound(name, len(raw), most)
	return raw
}

// within returns the members of an optional object as an object of its own, which takes over this
// object's violation.
func (o *object) within(name string) *object {
	inner := &object{}
	o.read(name, &inner.members, "an object")
	inner.err = o.err
	return inner
}

// isObject reports whether a valid JSON value is an object.
func isObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// maintenance reads maintenance_info.version for clients that know it. An empty object counts as
// absent (CLI-04).
func (o *object) maintenance(v version) *string {
	if v < maintenanceInfo {
		return nil
	}
	info := o.within("maintenance_info")
	if o.err = info.err; len(info.members) == 0 {
		return nil
	}
	version := info.text("version")
	if info.err != nil || version == "" {
		o.refuse("The member maintenance_info.version must be a string that is not empty.")
	}
	return &version
}
