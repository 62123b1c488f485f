package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/postgres"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	long, many := strings.Repeat("a", 63), make([]any, 101)
	for i := range many {
		many[i] = fmt.Sprint("e", i)
	}
	for name, tc := range map[string]struct {
		setting string
		value   any
		want    string // the snapshot, or what the error begins with
	}{
		"Limit":         {"connection_limit", 10000, `{"connection_limit":10000}`},
		"Timeout":       {"statement_timeout", 86400, `{"statement_timeout":86400}`},
		"Size":          {"size_warning", 1<<31 - 1, `{"size_warning":2147483647}`},
		"Valid":         {"valid_days", 3650, `{"valid_days":3650}`},
		"Retain":        {"retain_days", 3650, `{"retain_days":3650}`},
		"Drop":          {"on_delete", "drop", `{}`},
		"Target":        {"target", "other", `{"target":"other"}`},
		"Sorted":        {"extensions", []any{"b-1", "a_2"}, `{"extensions":["a_2","b-1"]}`},
		"LongName":      {"extensions", []any{long}, `{"extensions":["` + long + `"]}`},
		"NoExtension":   {"extensions", []any{}, `{}`},
		"NoExtensions":  {"extensions", nil, `{}`},
		"HighLimit":     {"connection_limit", 10001, "connection_limit is not a number"},
		"HighTimeout":   {"statement_timeout", 86401, "statement_timeout is not a number"},
		"HighSize":      {"size_warning", 1 << 31, "size_warning is not a number"},
		"HighValid":     {"valid_days", 3651, "valid_days is not a number"},
		"HighRetain":    {"retain_days", 3651, "retain_days is not a number"},
		"NoRule":        {"on_delete", nil, "on_delete is not a rule"},
		"NoTarget":      {"target", "", "target is not a name"},
		"NullTarget":    {"target", nil, "target is not a name"},
		"Text":          {"extensions", "a", "extensions is not a list"},
		"TooMany":       {"extensions", many, "extensions is not a list"},
		"Twice":         {"extensions", []any{"a", "a"}, "extensions is not a list"},
		"Capital":       {"extensions", []any{"a", "A"}, "extensions.1 is no name"},
		"Empty":         {"extensions", []any{""}, "extensions.0 is no name"},
		"TooLong":       {"extensions", []any{long + "a"}, "extensions.0 is no name"},
		"NumberOfThem":  {"extensions", []any{1}, "extensions.0 is no name"},
		"OtherSetting":  {"colour", "red", "colour is no setting of databases: remove it, or write one of extensions, "},
		"OfAnotherCase": {"Target", "other", "Target is no setting of databases"},
	} {
		snapshot, err := postgres.Check(check.Plan{Settings: map[string]any{tc.setting: tc.value}})
		got := string(snapshot)
		if err != nil {
			got = err.Error()
			if wrong, ok := errors.AsType[*advice.Error](err); !ok || wrong.Remedy == "" || snapshot != nil {
				t.Errorf("%s: %s and %v, want advice alone", name, snapshot, err)
			}
		}
		if got != tc.want && (err == nil || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
