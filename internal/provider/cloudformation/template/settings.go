package template

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
	jsonschema "github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// These are the files of an offering, unless its settings name others.
const (
	templateFile    = "template.yaml"
	permissionsFile = "permissions.json"
	policyFile      = "policy.json"
)

// settings are the settings of a plan after reading. Fixed has the users' parameters that the plan
// declares fixed; the template adds others.
type settings struct {
	plan.Settings
	TemplateFile    string            `json:"template"`
	PermissionsFile string            `json:"permissions"`
	PolicyFile      string            `json:"policy"`
	Sources         map[string]source `json:"parameters"` // by the template's parameters
	Silenced        []silence         `json:"warnings"`
}

// A source is a plan.Source as the settings write it.
type source struct {
	plan.Source
	Value  any     `json:"value"`
	Schema mapping // keywords of JSON Schema
	Fixed  bool
}

// A silence hides a warning that the operator has looked at, and need not see again. Its reason is
// for the next reader of the file.
type silence struct {
	About string // part of the warning's text
	met   bool
}

//go:embed settings.schema.json
var settingsText []byte

var ofSettings = jsonschema.Settings[settings]("an AWS service's plan", settingsText)

// maxMinutes is a week: without a limit, CloudFormation could be asked to wait far longer than any
// operation may take.
const maxMinutes = 7 * 24 * 60

// readSettings reads the settings of a plan, and checks what can be said without its files.
func readSettings(given mapping) (s settings, problems []error) {
	about := func(name, what, mend string) { problems = append(problems, advice.For(name, what, mend)) }
	s, problems = ofSettings(given)
	if _, is := given["existing"].(mapping); !is {
		s.Existing = nil
	}
	s.Format, s.Principal = plan.Format, cmp.Or(s.Principal, plan.User)
	s.Parameters = make(map[string]plan.Source, len(s.Sources))
	for name, one := range sorted.Map(s.Sources) {
		if one.Value != nil {
			text, why := plan.Text(one.Value)
			if one.Source.Value = &text; why != "" {
				about("parameters."+name+".value", "is no value of a parameter",
					"write text without control characters, a number, true or false, or a list of them")
			}
		}
		if s.Parameters[name] = one.Source; one.Fixed {
			s.Fixed = append(s.Fixed, one.Parameter)
		}
	}
	if v := given["minutes"]; v != nil {
		n, err := strconv.Atoi(fmt.Sprint(v))
		if s.Minutes = n; err != nil || n < 1 || n > maxMinutes {
			about("minutes", "is not a time that a stack operation can take",
				fmt.Sprintf("write whole minutes, 1 to %d, or leave it out", maxMinutes))
		}
	}
	return s, problems
}
