package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// A recordForm is the stored form of a record: the attributes of a binding are members of the
// record itself, whereas those of an instance are one member.
type recordForm struct {
	lifecycle.Record
	lifecycle.Attributes
}

// memberOperation is the member of a record that holds the operation.
const memberOperation = "operation"

// surelyRead is a depth of nesting that encoding/json certainly reads; the limit of
// encoding/json is ten times as deep.
const surelyRead = 1000

// decode decodes a stored record into the value that a pointer points to.
func decode(r store.Record, into any) (err error) {
	if r.Schema > Schema {
		return fmt.Errorf("record %q %q is of encoding %d, this program reads up to %d: run a newer one: %w", r.Partition, r.Sort,
			r.Schema,
			Schema, ErrUnreadable)
	}
	if r.Schema < Schema {
		return fmt.Errorf("record %q %q was written by a version before the first release, which this program does not "+
			"read: give it a new table: %w", r.Partition, r.Sort, ErrUnreadable)
	}
	if record, is := into.(*lifecycle.Record); is {
		var form recordForm
		err = unmarshal(r.Body, &form)
		if *record = form.Record; record.IsBinding() {
			record.Attributes = form.Attributes
		}
	} else {
		// Apart from the asker, values of the other types never change, or else may be lost, so they need not
		// keep the members of a newer program.
		err = json.Unmarshal(r.Body, into)
	}
	if err != nil {
		return fmt.Errorf("decoding record %q %q: %w: %w", r.Partition, r.Sort, ErrUnreadable, err)
	}
	return nil
}

// encode returns the form that decode reads. Platforms' own objects keep their text. It refuses a record
// that as a whole is nested too deeply: once written, the record could neither be read nor deleted.
func encode(body any) ([]byte, error) {
	record, isRecord := body.(*lifecycle.Record)
	if isRecord && record.IsBinding() {
		form := recordForm{Record: *record, Attributes: record.Attributes}
		form.Record.Attributes = lifecycle.Attributes{}
		body = form
	}
	out, err := marshal(body)
	if err != nil {
		return nil, err
	}
	// The encoder's text is valid unless it is nested too deeply. Most records open too few brackets for that.
	if opened := bytes.Count(out, []byte("{")) + bytes.Count(out, []byte("[")); opened > surelyRead && !json.Valid(out) {
		return nil, errors.New("it is nested too deeply to be read again")
	}
	if !isRecord {
		return out, nil
	}
	return withUnknown(out, record)
}

// unmarshal decodes a record in its stored form, and keeps members that this program does not know.
func unmarshal(body []byte, form *recordForm) error {
	// A record hardly ever has unknown members.
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if strict.Decode(form) == nil && len(bytes.TrimSpace(body[strict.InputOffset():])) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, form); err != nil {
		return err
	}
	var members, inner map[string]json.RawMessage
	err := json.Unmarshal(body, &members)
	if op := form.Operation; err == nil && op != nil {
		err = json.Unmarshal(members[memberOperation], &inner)
		op.Unknown = unknown(inner, reflect.TypeOf(*op))
	}
	// The form's own attributes, those of a binding, hide the record's.
	form.Unknown = unknown(members, reflect.TypeOf(form.Record), reflect.TypeOf(form.Attributes))
	return err
}

// unknown returns the members that none of the types has.
func unknown(members map[string]json.RawMessage, types ...reflect.Type) lifecycle.Unknown {
	for _, of := range types {
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return nil
	}
	return members
}

// withUnknown puts unknown members back into an encoded record.
func withUnknown(body []byte, record *lifecycle.Record) ([]byte, error) {
	op := record.Operation
	if record.Unknown == nil && (op == nil || op.Unknown == nil) {
		return body, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	maps.Copy(members, record.Unknown)
	if op != nil && op.Unknown != nil {
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

// marshal encodes a value, and keeps the text of platforms' own objects.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
