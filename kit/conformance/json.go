package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

type object = map[string]any

// decode decodes one JSON value; numbers keep their notation.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// encode encodes a value that JSON can always represent.
func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("(not JSON: %v)", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// normal returns a value as it is after transport: a copy, with numbers as text.
func normal(v any) any {
	out, err := decode([]byte(encode(v)))
	if err != nil {
		return nil
	}
	return out
}

// same compares JSON values; it compares numbers exactly, by value.
func same(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			w, ok := b[name]
			if !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return a == b || okX && okY && x.Cmp(y) == 0
	default:
		return a == b
	}
}

// find returns the value at a path, whose dots lead into nested objects.
func find(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(object)
		if !ok {
			return nil, false
		}
		if v, ok = o[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// put sets the value at a path, making the objects on the way.
func put(o object, path string, v any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		o[name] = v
		return
	}
	inner, ok := o[name].(object)
	if !ok {
		inner = object{}
		o[name] = inner
	}
	put(inner, rest, v)
}

// typeOf returns the name of the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
