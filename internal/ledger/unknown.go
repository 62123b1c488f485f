package ledger

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
)

// memberOperation is the member of a record that is an operation.
const memberOperation = "operation"

// courseOf is what a record has that may hold members of a newer program; nil
// for a record that is never changed, or that can be lost.
func courseOf(record any) *lifecycle.Course {
	switch r := record.(type) {
	case *lifecycle.Instance:
		return &r.Course
	case *lifecycle.Binding:
		return &r.Course
	case lifecycle.Instance:
		return &r.Course
	case lifecycle.Binding:
		return &r.Course
	default:
		return nil
	}
}

// unmarshal reads a record, and keeps what it does not know.
func unmarshal(body []byte, into any) error {
	course := courseOf(into)
	if course == nil {
		return json.Unmarshal(body, into)
	}
	// Almost always there is nothing that it does not know.
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if strict.Decode(into) == nil && len(bytes.TrimSpace(body[strict.InputOffset():])) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return err
	}
	if op := course.Operation; op != nil {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(members[memberOperation], &inner); err != nil {
			return err
		}
		op.Unknown = unknown(inner, reflect.TypeOf(*op))
	}
	course.Unknown = unknown(members, reflect.TypeOf(into).Elem())
	return nil
}

// unknown is what is left of the members without those that a type has.
func unknown(members map[string]json.RawMessage, of reflect.Type) lifecycle.Unknown {
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(members, name)
	}
	if len(members) == 0 {
		return nil
	}
	return members
}

// withUnknown puts what was not known back into an encoded record.
func withUnknown(body []byte, record any) ([]byte, error) {
	course := courseOf(record)
	if course == nil || course.Unknown == nil && (course.Operation == nil || course.Operation.Unknown == nil) {
		return body, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	maps.Copy(members, course.Unknown)
	if op := course.Operation; op != nil && op.Unknown != nil {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(members[memberOperation], &inner); err != nil {
			return nil, err
		}
		maps.Copy(inner, op.Unknown)
		var err error
		if members[memberOperation], err = marshal(inner); err != nil {
			return nil, err
		}
	}
	return marshal(members)
}

// marshal leaves platforms' own objects as they came.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
