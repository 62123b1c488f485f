// Package template checks the four files of an offering of AWS services when the catalog is
// compiled: the template, the permissions of CloudFormation, the policy of a binding, and the
// settings of each plan. It refuses what would otherwise fail, or open a way in, only when a user
// orders. From the schemas of AWS's resources, it derives what an update may change. No program
// that has to start fast imports it.
package template

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// These words in shapes separate instances with a stack from plans of existing resources. If an
// instance could change from one to the other, a stack would stay behind, or be looked for in vain.
const (
	shapeStack    = "stack"
	shapeExisting = "existing"
)

// A checker reads a plan and its files, and collects their problems.
type checker struct {
	check.Plan
	settings
	*model           // of the template; empty for a plan with an existing resource
	memo     mapping // see once
	problems []error
}

// Check is a check.Func. The snapshot is a plan.Settings. Check keeps the template and the
// permissions as files of the compiled catalog, as JSON without spaces.
func Check(checked check.Plan) (json.RawMessage, error) {
	c := checker{Plan: checked, model: &model{}, memo: mapping{}}
	c.settings, c.problems = readSettings(checked.Settings)
	c.settings.Offering = checked.Offering
	known := values(c.Existing)
	if c.Existing == nil {
		known = c.stack()
	} else {
		c.Shape = shapeExisting
		c.users()
	}
	c.binding(known)
	c.times()
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	c.unmet()
	return json.Marshal(c.settings.Settings)
}

func (c *checker) add(err error) {
	if err != nil {
		c.problems = append(c.problems, err)
	}
}

func (c *checker) about(setting, what, mend string) { c.add(advice.For(setting, what, mend)) }

// values returns the names of the Values that a plan's texts may use, besides outputs.
func values(existing *plan.Existing) map[string]bool {
	known := map[string]bool{plan.ValueRegion: true, plan.ValueAccount: true, plan.ValuePartition: true, plan.ValueSuffix: true,
		plan.ValuePrefix: true}
	if existing == nil {
		known[plan.ValueSpacePrefix] = true
		return known
	}
	for name := range existing.Exports {
		known[name] = true
	}
	if existing.Tag != "" {
		known["Arn"], known["Name"] = true, true
	}
	return known
}

// file reads one of the offering's files: the one that the settings name, or else the usual one.
func (c *checker) file(named, otherwise string) *document {
	named = cmp.Or(named, otherwise)
	if !fs.ValidPath(named) {
		c.add(&advice.Error{File: named, What: "is no file of the offering's folder",
			Remedy: "name one beside the offering's file, such as " + otherwise})
		return nil
	}
	before := len(c.problems)
	d := &document{file: named, reader: c, lines: map[string]int{"": 1}, ends: map[string]int{}}
	if d.read(c.Files); len(c.problems) > before {
		return nil
	}
	return d
}

// named returns the name of the template's file: the one in the settings, or the usual one.
func named(setting string, files fs.FS) string {
	if setting != "" {
		return setting
	}
	_, yaml := fs.Stat(files, templateFile)
	if _, json := fs.Stat(files, "template.json"); yaml != nil && json == nil {
		return "template.json"
	}
	return templateFile
}

// FileOf returns the name of the template's file of a plan that Check has accepted, in the
// offering's folder; empty for a plan with an existing resource.
func FileOf(checked check.Plan) string {
	s, _ := readSettings(checked.Settings)
	if s.Existing != nil {
		return ""
	}
	return named(s.TemplateFile, checked.Files)
}

// stack reads the parts of which an instance's stack is made. It returns the names that texts may
// use: the stack's outputs, and the values that all plans have.
func (c *checker) stack() map[string]bool {
	d := c.file(named(c.TemplateFile, c.Files), templateFile)
	permissions := c.file(c.PermissionsFile, permissionsFile)
	if d == nil || permissions == nil {
		return nil
	}
	before := len(c.problems)
	if c.load(d); len(c.problems) > before {
		return nil
	}
	c.refuse()
	c.sourced()
	c.secrets()
	c.Resources = map[string]string{}
	for name, r := range c.resources {
		c.Resources[name] = r.kind
	}
	c.serviceRole(permissions)
	c.Accepts = []string{} // never nil, which would mean any
	for name, s := range c.Parameters {
		s.Secret = c.declared[name].secret
		c.Parameters[name] = s
		if s.Parameter != "" {
			c.Accepts = append(c.Accepts, s.Parameter)
		}
	}
	c.Accepts = unique(c.Accepts)
	c.change()
	c.users()
	c.care()
	c.deletion()
	// As compact JSON, files that differ only in their form have the same digest.
	c.Template, c.Permissions = c.Keep(encoded(c.value)), c.Keep(encoded(permissions.value))
	c.add(c.Lock(c.Template))
	return c.outputNames()
}

// looked lists the types of resources whose contents a deletion looks at.
var looked = []string{"AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::DynamoDB::Table"}

// deletion refuses a rule for the contents that the broker cannot follow. If the plan has no rule,
// the default is to refuse the deletion of an instance that is not empty.
func (c *checker) deletion() {
	can := false
	for _, kind := range c.Resources {
		can = can || slices.Contains(looked, kind)
	}
	switch {
	case can && c.OnDelete == "":
		c.OnDelete = plan.Refuse
	case !can && (c.OnDelete == "" || c.OnDelete == plan.Refuse):
		c.about("on_delete", "must say what happens to the data of a deleted instance: the template has none of "+
			strings.Join(looked, ", ")+", and the broker cannot tell whether others are empty",
			"write on_delete: empty, or retain")
	}
}

// sourced refuses parameters without values, and values without parameters.
func (c *checker) sourced() {
	for name, s := range sorted.Map(c.Parameters) {
		p, there := c.declared[name]
		switch {
		case !there:
			c.about("parameters."+name, "is no parameter of the template", "declare it there, or remove it here")
		case s.Value == nil && p.fallback == nil && s.Target == "" && !needsUser(s, p):
			c.about("parameters."+name, "has no value where none is given",
				"write a value, or give the template's parameter a Default")
		case s.Value != nil && p.secret && *s.Value != "":
			c.about("parameters."+name+".value", "is a secret written into a file",
				"leave it out: a secret is a user's to give, or made in the stack")
		}
	}
	for name, p := range sorted.Map(c.declared) {
		if _, given := c.Parameters[name]; !given && p.fallback == nil {
			c.wrong("/Parameters"+slot(name), "parameter "+name+" has neither a default nor a source in the settings",
				"give it a Default, or write parameters: {"+name+": {value: …}} in the plan")
		}
	}
}
