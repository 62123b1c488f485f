package compile_test

import (
	"encoding/json"
	"errors"
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

// A provider looks at each plan when the catalog is compiled, and says where it
// is wrong: in a setting, or in a file beside the offering.
func TestProviderChecks(t *testing.T) {
	files := map[string]string{"a/offering.yaml": small("settings:\n    size: {min: 1}\n    note: x"), "a/template.yaml": "x"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   found
	}{
		"Setting": {"A setting is found by its path.", advice.For("size.min", "is too small", "write 2"),
			found{"mine/a/offering.yaml", 12, "is too small"}},
		"File": {"A file beside the offering has lines of its own.",
			&advice.Error{File: "template.yaml", Line: 7, What: "no Outputs", Remedy: "add them"},
			found{"mine/a/template.yaml", 7, "no Outputs"}},
		"Other": {"Whatever else is wrong is about the settings.", errors.New("no"),
			found{"mine/a/offering.yaml", 11, "refused by the provider demo"}},
	} {
		t.Run(name, func(t *testing.T) {
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
	if _, p, _ := c.Plan("offering-1", "plan-2"); string(p.Snapshot) != `{"plan":"large"}` {
		t.Errorf("the snapshot is %s", p.Snapshot)
	}
	if kept, found := c.File(digest); !found || string(kept) != "a template" {
		t.Errorf("the catalog has %q, %v", kept, found)
	}
	o.Beside = expect.Get(catalog.Open(expect.Get(compile.Compile(o, mine(sound)))(t)))(t)
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

// A plan whose provider takes no parameters needs no schema, and refuses what users give.
func TestAPlanWithoutParametersTakesNone(t *testing.T) {
	size := check.Parameters{Properties: map[string]any{"size": map[string]any{"type": "integer"}}}
	for name, c := range map[string]struct {
		described *check.Parameters
		takes     bool
	}{"None": {&check.Parameters{}, false}, "Size": {&size, true}, "NotDescribed": {nil, true}} {
		o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
			if c.described != nil {
				p.Describe(*c.described)
			}
			return nil, nil
		})
		all := expect.Get(compile.Load(o, mine(sound)))(t)
		for _, verb := range []catalog.Verb{catalog.Create, catalog.Update} {
			if err := all.Check(verb, "offering-1", "plan-1", json.RawMessage(`{"size": 1}`)); (err == nil) != c.takes {
				t.Errorf("%s: %s says %v", name, verb, err)
			}
		}
		expect.OK(t, all.Check(catalog.Create, "offering-1", "plan-1", nil), name, "without parameters")
	}
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
