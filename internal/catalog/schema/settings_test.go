package schema_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/test/expect"
)

const settings = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"additionalProperties": false,
	"propertyNames": {"description": "write n"},
	"properties": {
		"n": {"description": "is no number; write one", "type": "integer", "minimum": 1, "maximum": 10},
		"retain_days": {"description": "is no number; write days", "type": "integer", "minimum": 1},
		"on_delete": {"description": "is no rule; write drop", "type": "string", "pattern": "^drop$"},
		"other": {"items": {"description": "is no text; write text", "type": "string"}}
	},
	"dependentSchemas": {"retain_days": {"properties": {"on_delete": {"description": "is too much; leave it out", "not": {}}}}}
}`

type deletion struct {
	RetainDays int `json:"retain_days"`
}

var read = schema.Settings[struct {
	N int32 `json:"n"`
	deletion
}]("tests", []byte(settings))

// Numbers come from decoders of several kinds; what is none, or unknown, is told. What is deleted is retained or dropped.
func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		settings  map[string]any
		want      int32
		retention int
		wrong     string
	}{
		"None":     {nil, 0, 0, ""},
		"Integer":  {map[string]any{"n": 3, "other": "x"}, 3, 0, ""},
		"JSON":     {map[string]any{"n": json.Number("4")}, 4, 0, ""},
		"Float":    {map[string]any{"n": 5.0}, 5, 0, ""},
		"Unsigned": {map[string]any{"n": uint64(6)}, 6, 0, ""},
		"Half":     {map[string]any{"n": 5.5}, 0, 0, "n"},
		"Point":    {map[string]any{"n": json.Number("5.0")}, 0, 0, "n"},
		"Exponent": {map[string]any{"n": json.Number("5e0")}, 0, 0, "n"},
		"Kept":     {map[string]any{"retain_days": json.Number("7.0")}, 0, 0, "retain_days"},
		"Text":     {map[string]any{"n": "5"}, 0, 0, "n"},
		"Small":    {map[string]any{"n": 0}, 0, 0, "n"},
		"Large":    {map[string]any{"n": int64(1 << 40)}, 0, 0, "n"},
		"Within":   {map[string]any{"other": []any{"a", 1}}, 0, 0, "other.1"},
		"Unknown":  {map[string]any{"m": 5}, 0, 0, "m"},
		"Drop":     {map[string]any{"on_delete": "drop"}, 0, 0, ""},
		"Retain":   {map[string]any{"retain_days": json.Number("7")}, 0, 7, ""},
		"Both":     {map[string]any{"on_delete": "drop", "retain_days": 7}, 0, 7, "on_delete"},
		"Keep":     {map[string]any{"on_delete": "keep"}, 0, 0, "on_delete"},
		"Never":    {map[string]any{"retain_days": 0}, 0, 0, "retain_days"},
	} {
		got, problems := read(tc.settings)
		wrong := ""
		if e, ok := errors.AsType[*advice.Error](errors.Join(problems...)); ok {
			wrong = e.Name
		}
		if got.N != tc.want || got.RetainDays != tc.retention || wrong != tc.wrong {
			t.Errorf("%s: %d, retained for %d, wrong is %q, want %+v", name, got.N, got.RetainDays, wrong, tc)
		}
	}
}

func TestSettingsAreToldWhatIsWrong(t *testing.T) {
	_, problems := read(map[string]any{"n": json.Number("5.0"), "retain_days": 7})
	expect.Same(t, "about a number", "n is no number: write one", errors.Join(problems...).Error())
	_, problems = read(map[string]any{"on_delete": "keep", "retain": 1, "retain_day": 7})
	expect.Same(t, "about all settings", "on_delete is no rule: write drop\n"+
		"retain is no setting of tests: write n\n"+
		`retain_day is no setting of tests: did you mean "retain_days"?`, errors.Join(problems...).Error())
}
