package offeringfiles_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/offerings"
)

var update = flag.Bool("update", false, "write the compiled catalog anew")

// ship compiles what ships.
func ship(t *testing.T, warn func(advice.Error)) []byte {
	t.Helper()
	checks := adapters.Checks()
	checks[app.ProviderCloudFormation] = template.Check
	return expect.Get(compile.Compile(compile.Options{Providers: checks, Warn: warn},
		compile.Source{Name: "offerings", FS: offerings.FS}))(t)
}

// The program has what ships as its files say it.
func TestShippedIsCurrent(t *testing.T) {
	compiled := ship(t, nil)
	if *update {
		expect.OK(t, os.WriteFile("../../../offerings/catalog.dat", compiled, 0o600))
	} else if !bytes.Equal(compiled, offerings.Catalog) {
		t.Error("offerings/catalog.dat is not what the files beside it say: run go test ./internal/app/offeringfiles -update")
	}
}

// The AWS services that ship are as careful as operators are told to be: what is doubtful about one of an operator's would fail
// here. Only what CloudFormation may also call is not: permissions allow what the templates need, and no more.
func TestShippedAreCareful(t *testing.T) {
	c := expect.Get(catalog.Open(ship(t, func(w advice.Error) {
		// A publisher's bindings make rules.
		rules := strings.HasPrefix(w.File, "offerings/eventbridge") && strings.Contains(w.What, `calls "events:DescribeRule"`)
		if !rules && !strings.Contains(w.What, "CloudFormation may also call") {
			t.Error(w.Error())
		}
	})))(t)
	shipped := 0
	for _, o := range c.Offerings() {
		if o.Provider != app.ProviderCloudFormation {
			continue
		}
		shipped++
		for _, p := range o.Plans {
			m := expect.Get(plan.Parse(p.Snapshot))(t)
			if check.ChangeOf(p.Snapshot).Shape == "" || m.Proof == nil || m.Accepts == nil || p.MaintenanceInfo == nil {
				t.Errorf("%s %s: nothing says what its updates change, what proves a key, or which version it is", o.Name, p.Name)
			}
		}
	}
	if shipped < 8 {
		t.Errorf("only %d AWS services ship", shipped)
	}
}
