package template

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/suggest"
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
	templateName, permissionsName, policyName string             // names of files
	narrowed                                  map[string]mapping // keywords of JSON Schema, by the template's parameters
	silenced                                  []*silence
}

// A silence hides a warning that the operator has looked at, and need not see again.
type silence struct {
	about string // part of the warning's text
	met   bool
}

// A part is a mapping in the settings. It notes problems of its members, and reading continues.
type part struct {
	members  mapping
	at       string // prefix of its members' names
	problems *[]error
}

func (p part) about(name, what, mend string) {
	*p.problems = append(*p.problems, advice.For(p.at+name, what, mend))
}

// known notes members that settings do not have.
func (p part) known(names ...string) {
	for name := range sorted.Map(p.members) {
		if !slices.Contains(names, name) {
			p.about(name, "is no setting of an AWS service's plan",
				suggest.Meant(name, names, "leave it out, or write one of "+strings.Join(names, ", ")))
		}
	}
}

// text reads a member that is a text. mend says what to write instead.
func (p part) text(name, mend string) string {
	v, _ := p.members[name].(string)
	if p.members[name] != nil && v == "" {
		p.about(name, "is not text", mend)
	}
	return v
}

// word reads a member that is one of some words. what describes the problem of any other word.
func (p part) word(name, what string, words ...string) string {
	last := len(words) - 1
	mend := "write " + strings.Join(words[:last], ", ") + " or " + words[last]
	text := p.text(name, mend)
	if text != "" && !slices.Contains(words, text) {
		p.about(name, what, mend)
	}
	return text
}

// object reads a member that is a mapping. The result has nil members if there is none.
func (p part) object(name, mend string) part {
	v, ok := p.members[name].(mapping)
	if p.members[name] != nil && !ok {
		p.about(name, "is not a mapping", mend)
	}
	return part{v, p.at + name + ".", p.problems}
}

// texts reads a member that is a mapping of texts.
func (p part) texts(name, mend string) map[string]string {
	object := p.object(name, mend)
	if object.members == nil {
		return nil
	}
	all := make(map[string]string, len(object.members))
	for member := range object.members {
		all[member] = object.text(member, mend)
	}
	return all
}

func readSettings(given mapping) (s settings, problems []error) {
	p := part{given, "", &problems}
	p.known("template", "permissions", "policy", "parameters", "credentials", "principal", "assume",
		"proof", "on_delete", "existing", "target", "minutes", "warnings")
	for name, into := range map[string]*string{
		"template": &s.templateName, "permissions": &s.permissionsName, "policy": &s.policyName,
	} {
		*into = p.text(name, "name a file beside the offering's, such as "+templateFile)
	}
	p.text("target", "write the name of a target of the operator's, or leave it out")
	p.sources(&s)
	s.Format, s.Credentials = plan.Format, p.texts("credentials", "write NAME: \"${OUTPUT}\" for each")
	for _, own := range []string{"access_key_id", "secret_access_key"} {
		if _, taken := s.Credentials[own]; taken {
			p.about("credentials."+own, "is the principal's own", "leave it out: each binding gets it anyway")
		}
	}
	s.Principal = cmp.Or(plan.Principal(p.word("principal", "is nothing that a binding can receive",
		string(plan.User), string(plan.Role))), plan.User)
	s.Assume = p.assume(s.Principal)
	s.Proof = p.proof()
	s.Existing = p.existing()
	s.silenced = p.silences()
	s.OnDelete = plan.Rule(p.word("on_delete", "is no rule for instances that are not empty",
		string(plan.Empty), string(plan.Retain), string(plan.Refuse)))
	if s.Existing != nil && s.OnDelete != "" {
		p.about("on_delete", "has no effect on existing resources", "leave it out: a deprovision leaves it alone")
	}
	if v := given["minutes"]; v != nil {
		n, err := strconv.Atoi(fmt.Sprint(v))
		if s.Minutes = n; err != nil || n < 1 || n > maxMinutes {
			p.about("minutes", "is not a time that a stack operation can take",
				fmt.Sprintf("write whole minutes, 1 to %d, or leave it out", maxMinutes))
		}
	}
	return s, problems
}

// maxMinutes is a week: without a limit, CloudFormation could be asked to wait far longer than any
// operation may take.
const maxMinutes = 7 * 24 * 60

// sources reads where the values of parameters come from.
func (p part) sources(into *settings) {
	const mend = "write NAME: {parameter: NAME, value: DEFAULT}, or context, target or value alone"
	into.Parameters, into.narrowed = map[string]plan.Source{}, map[string]mapping{}
	all := p.object("parameters", mend)
	for name := range sorted.Map(all.members) {
		if v, ok := all.members[name].(mapping); !ok || len(v) == 0 {
			all.about(name, "does not say where its value comes from", mend)
			continue
		}
		one := all.object(name, mend)
		one.known("parameter", "context", "target", "value", "schema", "fixed")
		s := plan.Source{
			Parameter: one.text("parameter", "name the parameter that users give"),
			Context:   one.word("context", "is nothing that platforms send", "organization", "space", "instance_name"),
			Target:    one.word("target", "is no property of a target", "vpc", "subnets", "cidrs"),
		}
		if v, there := one.members["value"]; there {
			text, why := plan.Text(v)
			if s.Value = &text; why != "" {
				one.about("value", "is no value of a parameter",
					"write text without control characters, a number, true or false, or a list of them")
			}
		}
		into.Parameters[name] = s
		into.narrowed[name] = one.object("schema", "write keywords of JSON Schema, such as {minimum: 5}").members
		switch fixed, is := one.members["fixed"].(bool); {
		case one.members["fixed"] != nil && !is:
			one.about("fixed", "is neither true nor false", "write true where no update may change it")
		case fixed:
			into.Fixed = append(into.Fixed, s.Parameter)
		}
	}
}

var assumer = regexp.MustCompile(`^([0-9]{12}|arn:aws[a-z-]*:iam::[0-9]{12}:(root|role/[\w+=,.@/-]+|user/[\w+=,.@/-]+))$`)

func (p part) assume(principal plan.Principal) (all []string) {
	const mend = `list account ids of twelve digits in quotes, and ARNs of roles and users, such as ["123456789012"]`
	list, ok := p.members["assume"].([]any)
	switch {
	case p.members["assume"] != nil && (!ok || len(list) == 0):
		p.about("assume", "does not list who may assume a binding's role", mend)
	case principal == plan.Role && len(list) == 0:
		p.about("principal", "is a role that nobody may assume", "add assume: "+mend)
	case principal != plan.Role && len(list) > 0:
		p.about("assume", "means nothing for a user", "leave it out, or write principal: role")
	}
	for i, item := range list {
		text, _ := item.(string)
		if !assumer.MatchString(text) {
			p.about("assume."+strconv.Itoa(i), "names nobody who can assume a role", mend)
		}
		all = append(all, text)
	}
	return all
}

func (p part) proof() *plan.Proof {
	const mend = "write {service: s3, method: GET, path: \"/${BucketName}\"}: one call that the policy allows"
	from := p.object("proof", mend)
	if from.members == nil {
		return nil
	}
	from.known("service", "method", "path", "headers", "body")
	proof := &plan.Proof{
		Service: from.text("service", mend),
		Method: from.word("method", "is no method", http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
			http.MethodDelete),
		Path: from.text("path", mend), Headers: from.texts("headers", "write NAME: TEXT"),
		Body: from.text("body", "write text: JSON in single quotes"),
	}
	if strings.Trim(proof.Service, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || proof.Service == "" {
		from.about("service", "is not how hosts and signatures name a service", "write it in lower case, such as sqs")
	}
	if proof.Path != "" && proof.Path[0] != '/' {
		from.about("path", "is no path", "begin it with a slash")
	}
	return proof
}

// silences reads the warnings that the operator knows. Each has a reason, which is for the next
// reader of the file.
func (p part) silences() (all []*silence) {
	const mend = "list each as {about: PART OF THE WARNING, reason: WHY IT IS SO}"
	list, ok := p.members["warnings"].([]any)
	if p.members["warnings"] != nil && !ok {
		p.about("warnings", "is not a list", mend)
	}
	for i, item := range list {
		name := "warnings." + strconv.Itoa(i)
		object, ok := item.(mapping)
		if !ok {
			p.about(name, "is not a mapping", mend)
			continue
		}
		one := part{object, name + ".", p.problems}
		one.known("about", "reason")
		s := &silence{about: one.text("about", mend)}
		if reason := one.text("reason", mend); reason == "" || s.about == "" {
			p.about(name, "does not say which warning it is about, or why that is known", mend)
			continue
		}
		all = append(all, s)
	}
	return all
}

// existing reads the part that names a resource that the broker does not make.
func (p part) existing() *plan.Existing {
	const mend = `write {exports: {NAME: EXPORT}}, or {tag: "NAME=VALUE", type: sqs:queue}`
	from := p.object("existing", mend)
	if from.members == nil {
		return nil
	}
	from.known("exports", "tag", "type")
	e := &plan.Existing{
		Exports: from.texts("exports", "write NAME: EXPORT"),
		Tag:     from.text("tag", `write "NAME=VALUE"`), Type: from.text("type", "write SERVICE:KIND, such as sqs:queue"),
	}
	name, _, ok := strings.Cut(e.Tag, "=")
	switch {
	case (e.Tag == "") == (len(e.Exports) == 0):
		p.about("existing", "does not name one resource", mend)
	case e.Tag != "" && (!ok || name == ""):
		from.about("tag", "is no tag", `write "NAME=VALUE", in quotes`)
	case strings.HasPrefix(strings.ToLower(name), "aws:") || strings.HasPrefix(name, "longshore:"):
		from.about("tag", "is a tag that others set", "tag the resource with a name of your own")
	case (e.Tag == "") != (e.Type == ""):
		from.about("type", "is given without a tag, or a tag without it", mend)
	}
	for _, unused := range []string{"template", "permissions", "parameters", "minutes"} {
		if p.members[unused] != nil {
			p.about(unused, "has no effect on existing resources", "leave it out, or leave out existing")
		}
	}
	return e
}
