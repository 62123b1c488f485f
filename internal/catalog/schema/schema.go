// Package schema judges JSON values by JSON Schema, draft-04 to 2020-12, and says what is wrong
// in words for the person who gave the value: the place, and what would be allowed, but never
// the value itself, which may be a secret.
//
// It does nothing before its first use, since a function that starts cold waits for it. The
// compiler of the catalog makes sure that a schema follows its draft. New refuses references to
// other documents, and schemas within others that have an $id.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// drafts holds the years or numbers of the drafts, by the value of $schema without a final "#".
var drafts = map[string]int{
	"http://json-schema.org/draft-04/schema":       4,
	"http://json-schema.org/draft-06/schema":       6,
	"http://json-schema.org/draft-07/schema":       7,
	"https://json-schema.org/draft/2019-09/schema": 2019,
	"https://json-schema.org/draft/2020-12/schema": 2020,
}

// draftOf returns the draft that a value of $schema names; 0 for none.
func draftOf(said any) int {
	s, _ := said.(string)
	return drafts[strings.TrimSuffix(s, "#")]
}

// Known reports whether a value of $schema names a draft that this package supports.
func Known(draft any) bool { return draftOf(draft) != 0 }

// Parse parses one JSON value with nothing after it. Numbers are json.Number, which keeps their digits.
func Parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// maxExponent bounds the decimal exponent of numbers. It is beyond every number that computers
// work with; without it, a few bytes could ask for the memory of a million digits (INP-15).
const maxExponent = 1000

// Extreme reports whether a value holds a number with a decimal exponent beyond 1000 in either
// direction. Neither schemas nor the values that they judge may hold one.
func Extreme(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if Extreme(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, Extreme)
	case json.Number:
		i := strings.IndexAny(string(v), "eE")
		if i < 0 {
			return false
		}
		exponent, err := strconv.Atoi(string(v[i+1:]))
		return err != nil || exponent < -maxExponent || exponent > maxExponent
	}
	return false
}

// A Schema is a JSON schema that is ready to judge. It never changes, so any number of requests may use it at once.
type Schema struct {
	root  *node
	draft int
	// declared holds the member names that the schema itself mentions. Messages name no others,
	// since users' own names may be secrets.
	declared map[string]bool
	// tracks says that the schema asks which members and items have been judged; only then are
	// they recorded.
	tracks bool
}

// Own returns one of the program's own schemas, compiled when it is first asked for.
func Own(of string, text []byte) func() *Schema {
	return sync.OnceValue(func() *Schema {
		s, broken := New(text)
		if broken != nil {
			panic(fmt.Sprintf("the schema of %s does not compile: %v", of, broken))
		}
		return s
	})
}

// A node is one of the schemas in a document. Keywords that it does not have are nil.
type node struct {
	never bool // the schema is false
	about string

	types []string
	enum  []any // the single value of a const
	// allowed has the values of enum, in canonical form: a long enum must not make a long list of items slow.
	allowed       map[string]bool
	format        string
	pattern       *regexp.Regexp
	bounds        []bound
	required      []string
	properties    map[string]*node
	patterns      map[*regexp.Regexp]*node
	additional    *node
	propertyNames *node
	needs         map[string][]string // dependent members
	dependents    map[string]*node
	unique        bool
	prefix        []*node
	items         *node // the items beyond prefix
	contains      *node
	containing    []bound // bounds on the number of items that contains matches

	not                                     *node
	refs, allOf, anyOf, oneOf               []*node
	when, then, otherwise                   *node
	unevaluatedItems, unevaluatedProperties *node
}

// says returns a schema's description, or else that of the schema that it refers to.
func (n *node) says() string {
	for i := 0; n != nil && i < 10; i++ {
		if n.about != "" || len(n.refs) == 0 {
			return n.about
		}
		n = n.refs[0]
	}
	return ""
}

var escapes, plains = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// Escape turns a name into a token of a JSON pointer.
func Escape(name string) string { return escapes.Replace(name) }

// Unescape turns a token of a JSON pointer back into the name.
func Unescape(token string) string { return plains.Replace(token) }
