package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

// Settings returns a function that reads the settings of a plan, and tells what is wrong with them. The text is their schema,
// which describes each member by what is wrong with another value, and what to write instead, with a semicolon between them.
// The description of propertyNames says what to do about an unknown name; of says whose settings they are, in that message.
// The JSON tags of S are the names.
func Settings[S any](of string, text []byte) func(given map[string]any) (S, []error) {
	schema := Own("settings of "+of, text)
	return func(given map[string]any) (s S, problems []error) {
		text, _ := json.Marshal(given) // what was read from a file is JSON
		value, _ := Parse(text)
		found := schema().Explain(value)
		from := json.NewDecoder(bytes.NewReader(text))
		from.UseNumber()
		// A value of another type is refused already, and left out. A schema takes 5.0 and 5e0 as integers, which
		// encoding/json decodes into no int.
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](from.Decode(&s)); is && found == nil {
			name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // behind the names of embedded types
			if remedy := schema().root.properties[name].says(); remedy != "" {
				found = []Violation{{Member: name, Remedy: remedy}}
			}
		}
		for _, v := range Sorted(found) {
			what, mend, known := strings.Cut(v.Remedy, "; ")
			if !known {
				what, mend = "is no setting of "+of, v.Remedy
			}
			name := strings.ReplaceAll(strings.TrimPrefix(v.Member, "/"), "/", ".")
			problems = append(problems, advice.For(Unescape(name), what, mend))
		}
		return s, problems
	}
}
