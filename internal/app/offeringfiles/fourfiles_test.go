package offeringfiles_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// The four files of the documentation are an offering: with plans that mean what the page
// says, and permissions that lack nothing.
func TestFourFiles(t *testing.T) {
	var warnings []advice.Error
	c, err := offeringfiles.Validate("../../../docs/examples", func(w advice.Error) { warnings = append(warnings, w) })
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || filepath.Base(warnings[0].File) != "permissions.json" {
		t.Errorf("beside what CloudFormation may also call, it warns: %v", warnings)
	}
	for _, o := range c.Offerings() {
		if o.Name != "app-log" {
			continue
		}
		m, err := plan.Parse(o.Plans[0].Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"retention_days"}, m.Accepts); diff != "" || m.Fixed != nil {
			t.Errorf("its parameters: -want +got\n%s\nfixed %q", diff, m.Fixed)
		}
		for _, digest := range []string{m.Template, m.Permissions} {
			if _, there := c.File(digest); !there {
				t.Errorf("the compiled catalog does not carry %s", digest)
			}
		}
		return
	}
	t.Error("the offering is not there")
}

// The boundary that the page writes into templates is the one that an account holds.
func TestDocumentedBoundary(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cloudformation.md")
	if err != nil {
		t.Fatal(err)
	}
	scope := plan.ScopeOf("Longshore")
	stack := scope.Stack(provider.Tags{Platform: "p", Instance: "i", Incarnation: "o"}, "spaceabc")
	place := plan.Location{Partition: "aws", Account: "123456789012", Region: "eu-west-1"}
	got, err := plan.Fill(regexp.MustCompile("arn:.*:policy/longshore/.*").FindString(string(page)), map[string]string{
		plan.ValuePartition: place.Partition, plan.ValueAccount: place.Account, plan.ValueRegion: place.Region,
		"Scope": strings.Split(stack, "-")[1],
	})
	if want := scope.BoundaryARN(place, "app-log"); err != nil || got != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}
