package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
)

// The catalog lies beside each function that reads it, and has the offerings that were asked
// for.
func TestWriteCatalog(t *testing.T) {
	mine := t.TempDir()
	repository, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := offeringfiles.New(mine, "mine"); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason    string
		demo, own string
		want      []string // the first offerings
		about     string   // what the error says
		lacking   string   // what is said of a broker without an offering
	}{
		"Demo":      {"the demo on request", Offered, "", []string{"demo", "demo-other"}, "", ""},
		"Nothing":   {"a broker without an offering is no use", Off, "", nil, "", "one of: cloudformation, demo"},
		"Withdrawn": {"but it may still have instances to delete", Withdrawn, "", nil, "", ""},
		"Own": {"an operator's own are beside what ships", Offered, mine,
			[]string{"demo", "demo-other", "demo-route", "demo-syslog", "demo-volume", "mine"}, "", ""},
		"OwnOfDemo": {"what is off is not used by accident", Off, mine, nil, "deploy with -c demo=true", ""},
		"NoFolder": {"a folder that is not there is no empty one", Offered, filepath.Join(mine, "gone"), nil,
			"not a folder", ""},
		"Relative": {"a path is relative to the repository, and said whole", Offered, "gone", nil,
			filepath.Join(repository, "gone"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Settings{Code: t.TempDir(), Offerings: tc.own, Providers: providersWith(tc.demo)}
			for _, function := range functionNames {
				if err := os.Mkdir(filepath.Join(s.Code, function), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			lacking, err := WriteCatalog(s)
			if (lacking == "") != (tc.lacking == "") || !strings.Contains(lacking, tc.lacking) {
				t.Errorf("%s: it is told to lack %q, want words about %q", tc.reason, lacking, tc.lacking)
			}
			if tc.about != "" {
				if err == nil || !strings.Contains(err.Error(), tc.about) {
					t.Fatalf("%s: want an error about %q, got %v", tc.reason, tc.about, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for _, function := range readers {
				compiled, err := os.ReadFile(filepath.Join(s.Code, function, app.CatalogFile))
				if err != nil {
					t.Fatal(err)
				}
				c, err := catalog.Open(compiled)
				if err != nil {
					t.Fatal(err)
				}
				all := c.Offerings()
				if len(all) < len(tc.want) || tc.demo != Offered && len(all) > 0 {
					t.Fatalf("%s: %s has %d offerings", tc.reason, function, len(all))
				}
				for i, want := range tc.want {
					if all[i].Name != want {
						t.Errorf("%s: %s has %s, want %s", tc.reason, function, all[i].Name, want)
					}
				}
			}
		})
	}
}

// A stack without the demo does not wire it; one that has withdrawn it still does.
func TestTheDemoOnRequest(t *testing.T) {
	for state, want := range map[string]bool{Offered: true, Withdrawn: true, Off: false} {
		made, err := synthesized(map[string]any{"demo": state})
		if err != nil {
			t.Fatal(err)
		}
		wired, _ := at(functions(t, made)[FunctionProvisioner], "Environment", "Variables", app.EnvProviders).(string)
		if has := strings.Contains(wired, app.ProviderDemo); has != want {
			t.Errorf("demo=%s: it has the demo: %t", state, has)
		}
	}
}
