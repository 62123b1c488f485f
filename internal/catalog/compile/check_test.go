package compile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// A provider looks at each plan when the catalog is compiled, and says where it is wrong: in a setting, or in a file.
func TestProviderChecks(t *testing.T) {
	files := map[string]string{"a/offering.yaml": small("settings:\n    size: {min: 1}\n    note: x"), "a/template.yaml": "x"}
	for _, tc := range []struct {
		reason string
		err    error
		want   found
	}{
		{"A setting is found by its path.", advice.For("size.min", "is too small", "write 2"),
			found{"mine/a/offering.yaml", 12, "is too small"}},
		{"A file beside the offering has lines of its own.",
			&advice.Error{File: "template.yaml", Line: 7, What: "no Outputs", Remedy: "add them"},
			found{"mine/a/template.yaml", 7, "no Outputs"}},
		{"Whatever else is wrong is about the settings.", errors.New("no"),
			found{"mine/a/offering.yaml", 11, "refused by the provider demo"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
				if _, err := fs.Stat(p.Files, "template.yaml"); err != nil {
					t.Errorf("the provider does not see what stands beside: %v", err)
				}
				if p.Plan != "small" {
					return nil, nil
				}
				return nil, tc.err
			})
			_, err := compile.Load(o, compile.Source{Name: "mine", FS: folder(files)})
			refuses(t, tc.reason, err, tc.want)
		})
	}
}

// The catalog has the snapshot that a provider makes of a plan, for instances to record. A file that it keeps is there by its
// digest, and stays where others are compiled beside it.
func TestSnapshotsAndFilesAreKept(t *testing.T) {
	var digest string
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
		digest = p.Keep([]byte("a template"))
		return json.Marshal(map[string]string{"plan": p.Plan})
	})
	c := expect.Get(compile.Load(o, mine(sound)))(t)
	_, p, _ := c.Plan("offering-1", "plan-2")
	expect.Same(t, "the snapshot", `{"plan":"large"}`, string(p.Snapshot))
	if kept, found := c.File(digest); !found || string(kept) != "a template" {
		t.Errorf("the catalog has %q, %v", kept, found)
	}
	o.Beside = expect.Get(catalog.Open(expect.Get(compile.Compile(o, mine(sound)))(t)))(t)
	o.Providers["demo"] = func(check.Plan) (json.RawMessage, error) { return nil, nil } // it keeps nothing
	other := strings.NewReplacer("offering-1", "offering-2", "plan-", "other-", "one", "two").Replace(sound)
	c = expect.Get(compile.Load(o, mine(other)))(t)
	if _, found := c.File(digest); !found || len(c.Offerings()) != 2 {
		t.Error("what stands beside the compiled catalog is there without its files")
	}
	_, err := compile.Load(o, mine(sound))
	again := func(line int) found {
		return found{"mine/a/offering.yaml", line, "used already (the offering one that ships)"}
	}
	refuses(t, "an offering that is there already", err, again(1), again(2), again(8), again(11))
}

// An operator who names a provider that is off is told what to do.
func TestProvidersThatAreOff(t *testing.T) {
	o := catalogtest.Providers("demo", "real")
	o.Off = map[string]string{"demo": "turn it on"}
	_, err := compile.Load(o, mine(sound))
	refuses(t, "named", err, found{"mine/a/offering.yaml", 4, "turn it on"})
}

// The example in the documentation is a file that loads.
func TestDocumentedFile(t *testing.T) {
	text := expect.Get(os.ReadFile("../../../docs/offerings.md"))(t)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("there is no example")
	}
	o := expect.Get(compile.Load(catalogtest.Providers("demo"), mine(file)))(t).Offerings()[0]
	if o.DashboardOf("i") != "https://cache.example.com/instances/i" || o.DashboardClient == nil || len(o.Plans) != 1 ||
		o.Plans[0].Schemas == nil || o.Plans[0].TypicalDuration != 120 {
		t.Errorf("%+v", o)
	}
}

// A member of the offering holds for each plan that does not say otherwise.
func TestShared(t *testing.T) {
	c := expect.Get(load(map[string]string{"a/offering.yaml": spoil(map[int]string{
		5: "bindable: true\nfree: false\nmaintenance_info: {version: 1.0.0, description: d}\n" +
			"settings:\n  size: {min: 1, max: 2}\n  note: x",
		13: "  description: The large one\n  free: true\n  maintenance_info: {version: 2.0.0}\n" +
			"  settings: {size: {max: 9}, note: ~, more: ~}",
	})}))(t)
	_, small, _ := c.Plan("offering-1", "plan-1")
	_, large, _ := c.Plan("offering-1", "plan-2")
	if *small.Free || !*large.Free || small.MaintenanceInfo.Version != "1.0.0" || large.MaintenanceInfo.Version != "2.0.0" ||
		large.MaintenanceInfo.Description != "d" {
		t.Errorf("small %+v\nlarge %+v", small, large)
	}
	expect.Same(t, "settings", []map[string]any{
		{"size": map[string]any{"min": 1.0, "max": 2.0}, "note": "x"},
		{"size": map[string]any{"min": 1.0, "max": 9.0}, "more": nil},
	}, []map[string]any{small.Settings, large.Settings})
}

// A problem of what plans share has the line where it stands, and is told once.
func TestSharedProblems(t *testing.T) {
	text := spoil(map[int]string{5: "bindable: true\nsettings:\n  size: {min: 1}\nasynchronous: alowed",
		13: "  description: The large one\n  settings:\n    size: {max: 9}"})
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
		if p.Plan == "large" {
			return nil, advice.For("size.max", "is too much", "write 3")
		}
		return nil, advice.For("size.min", "is too small", "write 2")
	})
	_, err := compile.Load(o, mine(text))
	refuses(t, "Schema", err, found{"mine/a/offering.yaml", 8, "asynchronous must be"})
	_, err = compile.Load(o, mine(strings.Replace(text, "alowed", "allowed", 1)))
	refuses(t, "Provider", err, found{"mine/a/offering.yaml", 7, "settings.size.min is too small"},
		found{"mine/a/offering.yaml", 18, "plans[1].settings.size.max is too much"})
}

// The cause of a provider's error is told, such as how long something is, and once where plans share it.
func TestCauseIsTold(t *testing.T) {
	o := judgedBy(func(check.Plan) (json.RawMessage, error) {
		return nil, &advice.Error{Name: "size", What: "is too much", Remedy: "write 3", Cause: errors.New("it is 9")}
	})
	_, err := compile.Load(o, mine(spoil(map[int]string{5: "bindable: true\nsettings: {size: 9}"})))
	expect.Same(t, "the error", "mine/a/offering.yaml:6: settings.size is too much; write 3 (it is 9)", fmt.Sprint(err))
}

// A schema with a number that takes a million digits is refused, not computed, also where a provider describes it.
func TestDescribedNumbers(t *testing.T) {
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
		p.Describe(check.Parameters{Properties: map[string]any{"a": map[string]any{"maxLength": json.Number("1e9999999")}}})
		return nil, nil
	})
	_, err := compile.Load(o, mine(small("")))
	const rule = "make a schema in which the parameters must hold only numbers"
	refuses(t, "described", err, found{"mine/a/offering.yaml", 8, rule}, found{"mine/a/offering.yaml", 12, rule})
}

// A plan's version stands for the files that it was locked with. They are locked anew under another version, never the same.
func TestLock(t *testing.T) {
	digest := "one"
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) { return nil, p.Lock(digest) })
	files := map[string]string{"a/offering.yaml": small("maintenance_info: {version: 1.0.0}")}
	source := func() compile.Source { return compile.Source{Name: "mine", FS: folder(files)} }
	judge := func() error { return expect.Err(compile.Load(o, source())) }
	lock := func() {
		t.Helper()
		locks, err := compile.Lock(o, source())
		if err != nil || len(locks) != 1 {
			t.Fatalf("locks %v: %v", locks, err)
		}
		for name, text := range locks {
			files[name] = string(text)
		}
	}
	const file, still = "mine/a/offering.yaml", "still has the version 1.0.0"
	refuses(t, "no lock", judge(), found{file, 11, "has the version 1.0.0, which offering.lock does not have"})
	lock()
	const want = "{\n  \"plan-1\": {\n    \"version\": \"1.0.0\",\n    \"digest\": \"one\"\n  }\n}\n"
	expect.Same(t, "the lock", want, files["a/offering.lock"])
	expect.OK(t, judge(), "locked")
	lock()

	digest = "two"
	refuses(t, "changed", judge(), found{file, 11, still})
	refuses(t, "locked again", expect.Err(compile.Lock(o, source())), found{file, 11, still})

	files["a/offering.yaml"] = strings.Replace(files["a/offering.yaml"], "1.0.0", "1.1.0", 1)
	refuses(t, "raised", judge(), found{file, 11, "has the version 1.1.0, which offering.lock does not have"})
	lock()
	expect.OK(t, judge(), "locked anew")

	files["a/offering.lock"] = "<<<<<<< HEAD"
	refuses(t, "conflict", judge(), found{"mine/a/offering.lock", 0, "cannot be read"})
}

// Where the provider says what users may set, a plan has no schemas of its own, and platforms are shown those that follow: where
// users may set nothing, too.
func TestDescribed(t *testing.T) {
	const begins = `{"parameters":{"$schema":"http://json-schema.org/draft-04/schema#","additionalProperties":false,"properties":`
	const ends = `"type":"object"}}`
	const none = begins + `{},` + ends
	for _, c := range []struct {
		told           check.Parameters
		create, update string
	}{
		{check.Parameters{Required: []string{"a"}, Fixed: []string{"a"},
			Properties: map[string]any{"a": map[string]any{"type": "string"}, "b": map[string]any{"type": "integer"}}},
			begins + `{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],` + ends,
			begins + `{"b":{"type":"integer"}},` + ends},
		{check.Parameters{}, none, none},
	} {
		o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
			p.Describe(c.told)
			return nil, nil
		})
		_, p, _ := expect.Get(compile.Load(o, mine(sound)))(t).Plan("offering-1", "plan-1")
		want := `{"service_instance":{"create":` + c.create + `,"update":` + c.update + `},"service_binding":{"create":` +
			none + `}}`
		expect.Same(t, "schemas", want, string(expect.Get(json.Marshal(p.Schemas))(t)))
		_, err := compile.Load(o, mine(withSchema(draft, "type: object")))
		refuses(t, "schemas of its own", err,
			found{"mine/a/offering.yaml", 11, "plans[0].schemas says what users may set, which follows"})
	}
}
