package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/test/expect"
)

// The catalog lies beside each function that reads it, and has the offerings that were asked for.
func TestWriteCatalog(t *testing.T) {
	mine := t.TempDir()
	repository := expect.Get(filepath.Abs(repository))(t)
	expect.Get(offeringfiles.New(mine, "mine", false))(t)
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			s := Settings{Code: t.TempDir(), Offerings: tc.own, Providers: providersWith(tc.demo)}
			for _, function := range functionNames {
				expect.OK(t, os.Mkdir(filepath.Join(s.Code, function), 0o755))
			}
			lacking, err := WriteCatalog(s)
			if (lacking == "") != (tc.lacking == "") || !strings.Contains(lacking, tc.lacking) {
				t.Errorf("%s: it is told to lack %q, want words about %q", tc.reason, lacking, tc.lacking)
			}
			if tc.about != "" {
				expect.Says(t, tc.reason, fmt.Sprint(err), tc.about)
				return
			}
			expect.OK(t, err, tc.reason)
			for _, function := range readers {
				compiled := expect.Get(os.ReadFile(filepath.Join(s.Code, function, app.CatalogFile)))(t)
				all := expect.Get(catalog.Open(compiled))(t).Offerings()
				if len(all) < len(tc.want) || tc.demo != Offered && len(all) > 0 {
					t.Fatalf("%s: %s has %d offerings", tc.reason, function, len(all))
				}
				for i, want := range tc.want {
					expect.Same(t, fmt.Sprintf("%s: %s has", tc.reason, function), want, all[i].Name)
				}
			}
		})
	}
}

// A stack without the demo does not wire it; one that has withdrawn it still does.
func TestTheDemoOnRequest(t *testing.T) {
	for state, want := range map[string]bool{Offered: true, Withdrawn: true, Off: false} {
		made := expect.Get(synthesized(map[string]any{"demo": state}))(t)
		wired := variables(functions(t, made)[FunctionProvisioner])[app.EnvProviders]
		expect.Same(t, fmt.Sprintf("demo=%s: it has the demo", state), want, strings.Contains(wired, app.ProviderDemo))
	}
}
