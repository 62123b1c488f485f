package template

import (
	"bytes"
	"cmp"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/provider/check"
)

// Permits are the permissions of offerings, completed with the calls that CloudFormation's handlers
// may make for their templates, by the paths of the files.
type Permits map[string]*Permit

// A Permit says how a file of permissions changes.
type Permit struct {
	Text  []byte   // the new content
	Added []string // actions
	Left  []string // actions that fit into no statement, or that only the operator may grant
}

// Add adds the calls for the template of a plan. Each action goes into the first statement that
// allows other actions of its service: a statement on everything if the action lists or knows no
// resources, and one on less otherwise. Resource and Condition stay as they are: the operator
// decides what the role reaches.
func (all Permits) Add(checked check.Plan) error {
	s, _ := readSettings(checked.Settings)
	if s.Existing != nil {
		return nil
	}
	c := &checker{Plan: checked, settings: s, model: &model{}}
	file := cmp.Or(s.PermissionsFile, permissionsFile)
	t, d := c.file(named(s.TemplateFile, c.Files), templateFile), c.file(file, permissionsFile)
	if len(c.problems) > 0 {
		return c.problems[0]
	}
	at := path.Join(c.Folder, file)
	p := all[at]
	if p == nil {
		p = &Permit{Text: d.text}
		all[at] = p
	} else if d.text != nil {
		d.json(p.Text) // with what was added for other plans
	}
	c.load(t)
	var calls []string
	for _, r := range c.resources {
		s, _ := schemaOf(r.kind)
		calls = append(calls, s.calls()...)
	}
	statements := d.statements()
	for _, action := range unique(without(statements, calls)) {
		i := slices.IndexFunc(statements, func(s statement) bool { return takes(s, action) })
		switch {
		case i >= 0 && !isGuarded(action) && d.text != nil:
			statements[i].more = append(statements[i].more, action)
			p.Added = append(p.Added, action)
		case !slices.Contains(p.Left, action):
			p.Left = append(p.Left, action)
		}
	}
	p.Text = written(d, statements)
	return errors.Join(c.problems...)
}

// takes reports whether a statement is for actions like this one.
func takes(s statement, action string) bool {
	service, _, _ := strings.Cut(strings.ToLower(action), ":")
	onAll := slices.ContainsFunc(s.resources, isEverything)
	return s.allows && onAll == withoutResources(action) && slices.ContainsFunc(s.actions, func(other string) bool {
		return strings.HasPrefix(strings.ToLower(other), service+":")
	})
}

// written returns the JSON file with the added actions of its statements. In each statement, they
// follow the present actions.
func written(d *document, all []statement) []byte {
	text := d.text
	for _, s := range slices.Backward(all) { // from the end, so that earlier places stay valid
		if len(s.more) == 0 {
			continue
		}
		more := ""
		for _, action := range s.more {
			more += ", " + strconv.Quote(action)
		}
		end := d.ends[s.at+"/Action"]
		if text[end-1] != ']' { // a single text instead of a list
			begin := bytes.LastIndexByte(text[:end-1], '"')
			text = slices.Concat(text[:begin], []byte("["), text[begin:end], []byte(more+"]"), text[end:])
			continue
		}
		last := len(bytes.TrimRight(text[:end-1], " \t\r\n"))
		if line := text[bytes.LastIndexByte(text[:last], '\n')+1 : last]; bytes.ContainsRune(text[last:end], '\n') {
			indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
			more = ",\n" + string(indent) + strings.TrimPrefix(more, ", ")
		}
		text = slices.Concat(text[:last], []byte(more), text[last:])
	}
	return text
}
