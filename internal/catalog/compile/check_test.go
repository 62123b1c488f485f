package compile_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	text := spoil(map[int]string{10: "  description: The small one\n  settings:\n    size: {min: 1}\n    note: x"})
	cases := map[string]struct {
		reason string
		err    error
		want   found
	}{
		"Setting": {"A setting is found by its path.",
			advice.For("size.min", "is too small", "write 2"),
			found{"mine/a/offering.yaml", 12, "is too small"}},
		"File": {"A file beside the offering has lines of its own.",
			&advice.Error{File: "template.yaml", Line: 7, What: "no Outputs", Remedy: "add them"},
			found{"mine/a/template.yaml", 7, "no Outputs"}},
		"Other": {"Whatever else is wrong is about the settings.", errors.New("no"),
			found{"mine/a/offering.yaml", 11, "refused by the provider demo"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge := func(p check.Plan) (json.RawMessage, error) {
				if _, err := fs.Stat(p.Files, "template.yaml"); err != nil {
					t.Errorf("the provider does not see what stands beside: %v", err)
				}
				if p.Plan != "small" {
					return nil, nil
				}
				return nil, tc.err
			}
			o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
			_, err := compile.Load(o, compile.Source{Name: "mine",
				FS: folder(map[string]string{"a/offering.yaml": text, "a/template.yaml": "x"})})
			want := []found{tc.want}
			expect.Same(t, tc.reason, want, problemsOf(t, tc.reason, err, want))
		})
	}
}

// The catalog has the snapshot that a provider makes of a plan, for instances to record.
func TestSnapshots(t *testing.T) {
	judge := func(p check.Plan) (json.RawMessage, error) { return json.Marshal(map[string]string{"plan": p.Plan}) }
	o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
	c, err := compile.Load(o, compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": sound})})
	expect.OK(t, err)
	if _, p, _ := c.Plan("offering-1", "plan-2"); string(p.Snapshot) != `{"plan":"large"}` {
		t.Errorf("the snapshot is %s", p.Snapshot)
	}
}

// A plan whose provider takes no parameters needs no schema, and refuses what users give.
func TestAPlanWithoutParametersTakesNone(t *testing.T) {
	size := check.Parameters{Properties: map[string]any{"size": map[string]any{"type": "integer"}}}
	for name, c := range map[string]struct {
		described *check.Parameters
		takes     bool
	}{"None": {&check.Parameters{}, false}, "Size": {&size, true}, "NotDescribed": {nil, true}} {
		o := compile.Options{Providers: map[string]check.Func{"demo": func(p check.Plan) (json.RawMessage, error) {
			if c.described != nil {
				p.Describe(*c.described)
			}
			return nil, nil
		}}}
		all, err := compile.Load(o, compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": sound})})
		expect.OK(t, err)
		given := json.RawMessage(`{"size": 1}`)
		if err := all.Check(catalog.Create, "offering-1", "plan-1", given); (err == nil) != c.takes {
			t.Errorf("%s: a provision says %v", name, err)
		}
		if err := all.Check(catalog.Update, "offering-1", "plan-1", given); (err == nil) != c.takes {
			t.Errorf("%s: an update says %v", name, err)
		}
		if err := all.Check(catalog.Create, "offering-1", "plan-1", nil); err != nil {
			t.Errorf("%s: without parameters it says %v", name, err)
		}
	}
}

// A file that a provider keeps is in the catalog by its digest, and stays where others are
// compiled beside it.
func TestKeptFiles(t *testing.T) {
	var digest string
	judge := func(p check.Plan) (json.RawMessage, error) {
		digest = p.Keep([]byte("a template"))
		return nil, nil
	}
	o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
	source := compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": sound})}
	c, err := compile.Load(o, source)
	expect.OK(t, err)
	if kept, found := c.File(digest); !found || string(kept) != "a template" {
		t.Errorf("the catalog has %q, %v", kept, found)
	}
	compiled, err := catalog.Open(offerings(t, o, source))
	expect.OK(t, err)
	other := compile.Source{Name: "other", FS: folder(map[string]string{"b/offering.yaml": strings.NewReplacer(
		"offering-1", "offering-2", "plan-", "other-", "one", "two").Replace(sound)})}
	o.Beside = compiled
	if c, err = compile.Load(o, other); err != nil {
		t.Fatal(err)
	}
	if _, found := c.File(digest); !found || len(c.Offerings()) != 2 {
		t.Error("what stands beside the compiled catalog is there without its files")
	}
	_, err = compile.Load(o, source)
	want := []found{{"mine/a/offering.yaml", 1, "used already (the offering one that ships)"}}
	if got := problemsOf(t, "twice", err, want); len(got) == 0 || got[0] != want[0] {
		t.Errorf("an offering that is there already: %v", got)
	}
}

// offerings compiles a folder.
func offerings(t *testing.T, o compile.Options, source compile.Source) []byte {
	t.Helper()
	compiled, err := compile.Compile(o, source)
	expect.OK(t, err)
	return compiled
}

// An operator who names a provider that is off is told what to do.
func TestProvidersThatAreOff(t *testing.T) {
	o := catalogtest.Providers("demo", "real")
	o.Off = map[string]string{"demo": "turn it on"}
	_, err := compile.Load(o, compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": sound})})
	want := []found{{"mine/a/offering.yaml", 4, "turn it on"}}
	if diff := cmp.Diff(want, problemsOf(t, "named", err, want)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
