// Package template looks at the four files of an offering of AWS services when the
// catalog is compiled: the template, what CloudFormation may do for it, what a binding
// may do, and the settings of each plan. It refuses what would fail, or be a way in,
// only when a user orders; and it derives from the schemas of AWS's resources what an
// update may change. Nothing that starts cold imports it.
package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// The words of shapes that keep instances with a stack from plans of something that
// exists, and the other way: a stack would stay behind, or be looked for in vain.
const (
	shapeStack    = "stack"
	shapeExisting = "existing"
)

// A checker collects what is wrong with a plan and its files.
type checker struct {
	check.Plan
	settings
	problems []error
}

// Check is a check.Func. The snapshot is a plan.Settings, and the template and the
// permissions are kept as files of the compiled catalog, as JSON without spaces.
func Check(checked check.Plan) (json.RawMessage, error) {
	c := checker{Plan: checked}
	c.settings, c.problems = readSettings(checked.Settings)
	m := plan.Settings{
		Format: plan.Format, Offering: c.Offering, Parameters: c.parameters, Credentials: c.credentials,
		Principal: c.principal, Assume: c.assume, Proof: c.proof, OnDelete: c.onDelete, Existing: c.existing, Minutes: c.minutes,
	}
	if len(m.Parameters) == 0 {
		m.Parameters = nil
	}
	known := values(c.existing)
	if c.existing == nil {
		known = c.stack(&m)
	} else {
		m.Shape = shapeExisting
		c.users(&model{}, nil)
	}
	c.binding(&m, known)
	c.times()
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	c.unmet()
	return json.Marshal(m)
}

func (c *checker) add(err error) {
	if err != nil {
		c.problems = append(c.problems, err)
	}
}

func (c *checker) about(setting, what, mend string) { c.add(advice.For(setting, what, mend)) }

// values are the names of Values that a plan's texts may have, beside outputs.
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

// file reads one of the offering's files, and says which it was.
func (c *checker) file(named, otherwise string) *document {
	if named == "" {
		named = otherwise
	}
	if !fs.ValidPath(named) {
		c.add(&advice.Error{File: named, What: "is no file of the offering's folder",
			Remedy: "name one beside the offering's file, such as " + otherwise})
		return nil
	}
	d, err := read(c.Files, named)
	c.add(err)
	if err != nil {
		return nil
	}
	return d
}

// keep has the compiled catalog carry a value, as short as JSON is: what was written in
// another way has the same digest.
func (c *checker) keep(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		c.add(fmt.Errorf("writing a file of the compiled catalog: %w", err))
		return ""
	}
	if c.Keep == nil {
		return plan.Digest(text)
	}
	return c.Keep(text)
}

// named is the file of the template: the one that the settings name, or the usual one.
func named(setting string, files fs.FS) string {
	if setting != "" {
		return setting
	}
	if _, err := fs.Stat(files, templateFile); err != nil {
		if _, err := fs.Stat(files, "template.json"); err == nil {
			return "template.json"
		}
	}
	return templateFile
}

// FileOf is the file of a plan's template in the offering's folder, which Check has
// taken; empty for a plan of something that exists.
func FileOf(checked check.Plan) string {
	s, _ := readSettings(checked.Settings)
	if s.existing != nil {
		return ""
	}
	return named(s.template, checked.Files)
}

// stack reads what an instance's stack is made by, and gives the names that texts may
// have: its outputs beside the values that all have.
func (c *checker) stack(m *plan.Settings) map[string]bool {
	d := c.file(named(c.template, c.Files), templateFile)
	permissions := c.file(c.permissions, permissionsFile)
	if d == nil || permissions == nil {
		return nil
	}
	before := len(c.problems)
	t := newModel(d, c.problemOf(d))
	if len(c.problems) > before {
		return nil
	}
	c.refuse(t)
	c.sources(t)
	c.secrets(t)
	c.serviceRole(permissions, t)
	m.Resources = map[string]string{}
	for name, r := range t.resources {
		m.Resources[name] = r.kind
	}
	for name, s := range m.Parameters {
		s.Secret = t.parameters[name].secret
		m.Parameters[name] = s
	}
	m.Accepts = accepts(m.Parameters)
	e := &evaluator{model: t, sources: c.parameters}
	m.Fixed, m.Shape = e.change()
	for _, name := range c.fixed {
		if !slices.Contains(m.Fixed, name) {
			m.Fixed = append(m.Fixed, name)
		}
	}
	slices.Sort(m.Fixed)
	c.users(t, m.Fixed)
	c.care(t, e)
	c.deletion(m, t)
	m.Template, m.Permissions = c.keep(t.value), c.keep(permissions.value)
	if c.Lock != nil {
		c.add(c.Lock(m.Template))
	}
	return c.outputs(t, e)
}

// looked are the types of resources whose contents a deletion looks at.
var looked = []string{"AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::DynamoDB::Table"}

// deletion refuses a rule that nothing would follow. Unless a plan has one, nothing
// that holds data goes.
func (c *checker) deletion(m *plan.Settings, t *model) {
	can := false
	for _, r := range t.resources {
		can = can || slices.Contains(looked, r.kind)
	}
	switch {
	case can && m.OnDelete == "":
		m.OnDelete = plan.Refuse
	case !can && (m.OnDelete == "" || m.OnDelete == plan.Refuse):
		c.about("on_delete", "has to say what becomes of what an instance holds: the template has none of "+strings.Join(looked,
			", ")+
			", and whether others are empty cannot be seen", "write on_delete: empty, or retain")
	}
}

func (c *checker) problemOf(d *document) func(at, what, mend string) {
	return func(at, what, mend string) { c.add(d.problem(at, what, mend)) }
}

// accepts are the user's parameters, never nil: that would be any.
func accepts(sources map[string]plan.Source) []string {
	all := []string{}
	for _, s := range sources {
		if s.Parameter != "" && !slices.Contains(all, s.Parameter) {
			all = append(all, s.Parameter)
		}
	}
	slices.Sort(all)
	return all
}

// sources refuses parameters without values, and values without parameters.
func (c *checker) sources(t *model) {
	for _, name := range slices.Sorted(maps.Keys(c.parameters)) {
		p, there := t.parameters[name]
		s := c.parameters[name]
		switch {
		case !there:
			c.about("parameters."+name, "is no parameter of the template", "declare it there, or remove it here")
		case s.Value == nil && p.fallback == nil && s.Target == "" && !needsUser(s, p):
			c.about("parameters."+name, "has no value where none is given",
				"write a value, or give the template's parameter a Default")
		case s.Value != nil && p.secret && *s.Value != "":
			c.about("parameters."+name+".value", "is a secret that stands in a file",
				"leave it out: a secret is a user's to give, or made in the stack")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.parameters)) {
		if _, given := c.parameters[name]; !given && t.parameters[name].fallback == nil {
			c.add(t.problem("/Parameters"+slot(name), "parameter "+name+" has neither a default nor a source in the settings",
				"give it a Default, or write parameters: {"+name+": {value: …}} in the plan"))
		}
	}
}
