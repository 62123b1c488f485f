package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// The files of an offering, unless its settings name others.
const (
	templateFile    = "template.yaml"
	permissionsFile = "permissions.json"
	policyFile      = "policy.json"
)

// settings are those of a plan, read.
type settings struct {
	template, permissions, policy string // names of files
	parameters                    map[string]plan.Source
	narrowed                      map[string]map[string]any // JSON Schema's keywords, by the template's parameters
	fixed                         []string                  // parameters of users that the plan keeps as they are
	credentials                   map[string]string
	principal                     plan.Principal
	assume                        []string
	proof                         *plan.Proof
	onDelete                      plan.Rule
	existing                      *plan.Existing
	target                        string
	minutes                       int
	silenced                      []*silence
}

// A silence is a warning that the operator has looked at, and need not see again.
type silence struct {
	about string // part of the warning's text
	met   bool
}

// A reader notes what is wrong with settings, and goes on.
type reader struct{ problems []error }

func (r *reader) about(name, what, mend string) {
	r.problems = append(r.problems, advice.For(name, what, mend))
}

// known refuses members that settings do not have.
func (r *reader) known(at string, object map[string]any, names ...string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(names, name) {
			continue
		}
		r.about(at+name, "is no setting of an AWS service's plan",
			suggest.Meant(name, names, "leave it out, or write one of "+strings.Join(names, ", ")))
	}
}

// text reads a member that is text; mend says what to write.
func (r *reader) text(at string, object map[string]any, name, mend string) string {
	v, _ := object[name].(string)
	if object[name] != nil && v == "" {
		r.about(at+name, "is not text", mend)
	}
	return v
}

func (r *reader) object(at string, object map[string]any, name, mend string) map[string]any {
	v, ok := object[name].(map[string]any)
	if object[name] != nil && !ok {
		r.about(at+name, "is not a mapping", mend)
	}
	return v
}

// texts reads a member that is a mapping of texts.
func (r *reader) texts(at string, object map[string]any, name, mend string) map[string]string {
	members := r.object(at, object, name, mend)
	if members == nil {
		return nil
	}
	all := make(map[string]string, len(members))
	for member := range members {
		all[member] = r.text(at+name+".", members, member, mend)
	}
	return all
}

func readSettings(given map[string]any) (s settings, problems []error) {
	var r reader
	r.known("", given, "template", "permissions", "policy", "parameters", "credentials", "principal", "assume",
		"proof", "on_delete", "existing", "target", "minutes", "warnings")
	for name, into := range map[string]*string{"template": &s.template, "permissions": &s.permissions, "policy": &s.policy} {
		*into = r.text("", given, name, "name a file beside the offering's, such as "+templateFile)
	}
	s.target = r.text("", given, "target", "write the name of a target of the operator's, or leave it out")
	r.sources(&s, given)
	s.credentials = r.texts("", given, "credentials", "write NAME: \"${OUTPUT}\" for each")
	for _, own := range []string{"access_key_id", "secret_access_key", "region"} {
		if _, taken := s.credentials[own]; taken && own != "region" {
			r.about("credentials."+own, "is the principal's own", "leave it out: each binding gets it by itself")
		}
	}
	s.principal = cmp.Or(plan.Principal(r.text("", given, "principal", "write user or role")), plan.User)
	s.assume = r.assume(given, s.principal)
	s.proof = r.proof(given)
	s.existing = r.existing(given)
	s.silenced = r.silences(given)
	s.onDelete = plan.Rule(r.text("", given, "on_delete", "write empty, retain or refuse"))
	switch {
	case s.existing != nil && s.onDelete != "":
		r.about("on_delete", "means nothing for what exists already", "leave it out: a deprovision leaves it alone")
	case s.onDelete != "" && !slices.Contains([]plan.Rule{plan.Empty, plan.Retain, plan.Refuse}, s.onDelete):
		r.about("on_delete", "is no rule for what is not empty", "write empty, retain or refuse")
	}
	if v := given["minutes"]; v != nil {
		n, err := strconv.Atoi(fmt.Sprint(v))
		if s.minutes = n; err != nil || n < 1 || n > maxMinutes {
			r.about("minutes", "is not a time that a stack operation can take",
				fmt.Sprintf("write whole minutes, 1 to %d, or leave it out",
					maxMinutes))
		}
	}
	return s, r.problems
}

// maxMinutes is a week: what CloudFormation can be asked to wait is far above any
// operation's deadline.
const maxMinutes = 7 * 24 * 60

// sources reads where the values of parameters are from.
func (r *reader) sources(into *settings, given map[string]any) {
	const mend = "write NAME: {parameter: NAME, value: DEFAULT}, or context, target or value alone"
	into.parameters, into.narrowed = map[string]plan.Source{}, map[string]map[string]any{}
	members := r.object("", given, "parameters", mend)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := "parameters." + name + "."
		member, ok := members[name].(map[string]any)
		if !ok || len(member) == 0 {
			r.about("parameters."+name, "does not say where its value is from", mend)
			continue
		}
		r.known(at, member, "parameter", "context", "target", "value", "schema", "fixed")
		s := plan.Source{
			Parameter: r.text(at, member, "parameter", "name the parameter that users give"),
			Context:   r.text(at, member, "context", "write organization, space or instance_name"),
			Target:    r.text(at, member, "target", "write vpc, subnets or cidrs"),
		}
		if !slices.Contains([]string{"", "organization", "space", "instance_name"}, s.Context) {
			r.about(at+"context", "is nothing that platforms tell", "write organization, space or instance_name")
		}
		if !slices.Contains([]string{"", "vpc", "subnets", "cidrs"}, s.Target) {
			r.about(at+"target", "is nothing that a target has", "write vpc, subnets or cidrs")
		}
		if v, there := member["value"]; there {
			text, ok := valueText(v)
			if s.Value = &text; !ok {
				r.about(at+"value", "is no value of a parameter",
					"write text without control characters, a number, true or false, or a list of them")
			}
		}
		into.parameters[name] = s
		into.narrowed[name] = r.object(at, member, "schema", "write keywords of JSON Schema, such as {minimum: 5}")
		switch fixed, is := member["fixed"].(bool); {
		case member["fixed"] != nil && !is:
			r.about(at+"fixed", "is neither true nor false", "write true where no update may change it")
		case fixed:
			into.fixed = append(into.fixed, s.Parameter)
		}
	}
}

// valueText is a setting as CloudFormation takes it.
func valueText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, len(v) <= plan.MaxValue && !strings.ContainsFunc(v, plan.Unwritable)
	case json.Number:
		return plan.Number(v), true
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			_, nested := item.([]any)
			text, ok := valueText(item)
			if !ok || nested || strings.Contains(text, ",") {
				return "", false
			}
			texts[i] = text
		}
		joined := strings.Join(texts, ",")
		return joined, len(joined) <= plan.MaxValue
	}
	return "", false
}

var assumer = regexp.MustCompile(`^([0-9]{12}|arn:aws[a-z-]*:iam::[0-9]{12}:(root|role/[\w+=,.@/-]+|user/[\w+=,.@/-]+))$`)

func (r *reader) assume(given map[string]any, p plan.Principal) (all []string) {
	const mend = `list account ids of twelve digits in quotes, and ARNs of roles and users, such as ["123456789012"]`
	if p != plan.User && p != plan.Role {
		r.about("principal", "is nothing that a binding can get", "write user or role")
	}
	list, ok := given["assume"].([]any)
	switch {
	case given["assume"] != nil && (!ok || len(list) == 0):
		r.about("assume", "does not list who may assume a binding's role", mend)
	case p == plan.Role && len(list) == 0:
		r.about("principal", "is a role that nobody may assume", "add assume: "+mend)
	case p != plan.Role && len(list) > 0:
		r.about("assume", "means nothing for a user", "leave it out, or write principal: role")
	}
	for i, item := range list {
		text, _ := item.(string)
		if !assumer.MatchString(text) {
			r.about("assume."+strconv.Itoa(i), "names nobody who can assume a role", mend)
		}
		all = append(all, text)
	}
	return all
}

func (r *reader) proof(given map[string]any) *plan.Proof {
	const mend = "write {service: s3, method: GET, path: \"/${BucketName}\"}: one call that the policy allows"
	object := r.object("", given, "proof", mend)
	if object == nil {
		return nil
	}
	const at = "proof."
	r.known(at, object, "service", "method", "path", "headers", "body")
	p := &plan.Proof{
		Service: r.text(at, object, "service", mend), Method: r.text(at, object, "method", mend),
		Path: r.text(at, object, "path", mend), Headers: r.texts(at, object, "headers", "write NAME: TEXT"),
		Body: r.text(at, object, "body", "write text: JSON in single quotes"),
	}
	if strings.Trim(p.Service, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || p.Service == "" {
		r.about("proof.service", "is not how hosts and signatures name a service", "write it in lower case, such as sqs")
	}
	if !slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
		p.Method) {
		r.about("proof.method", "is no method", "write GET, HEAD, POST, PUT or DELETE")
	}
	if p.Path != "" && p.Path[0] != '/' {
		r.about("proof.path", "is no path", "begin it with a slash")
	}
	return p
}

// silences reads which warnings are known here, each with the reason: that is for whoever
// reads the file next.
func (r *reader) silences(given map[string]any) (all []*silence) {
	const mend = "list each as {about: PART OF THE WARNING, reason: WHY IT IS SO}"
	list, ok := given["warnings"].([]any)
	if given["warnings"] != nil && !ok {
		r.about("warnings", "is not a list", mend)
	}
	for i, item := range list {
		name := "warnings." + strconv.Itoa(i)
		object, ok := item.(map[string]any)
		if !ok {
			r.about(name, "is not a mapping", mend)
			continue
		}
		r.known(name+".", object, "about", "reason")
		s := &silence{about: r.text(name+".", object, "about", mend)}
		if reason := r.text(name+".", object, "reason", mend); reason == "" || s.about == "" {
			r.about(name, "does not say which warning it is about, or why that is known", mend)
			continue
		}
		all = append(all, s)
	}
	return all
}

// existing reads what names a resource that the broker does not make.
func (r *reader) existing(given map[string]any) *plan.Existing {
	const mend = `write {exports: {NAME: EXPORT}}, or {tag: "NAME=VALUE", type: sqs:queue}`
	object := r.object("", given, "existing", mend)
	if object == nil {
		return nil
	}
	const at = "existing."
	r.known(at, object, "exports", "tag", "type")
	e := &plan.Existing{
		Exports: r.texts(at, object, "exports", "write NAME: EXPORT"),
		Tag:     r.text(at, object, "tag", `write "NAME=VALUE"`), Type: r.text(at, object, "type",
			"write SERVICE:KIND, such as sqs:queue"),
	}
	name, _, ok := strings.Cut(e.Tag, "=")
	switch {
	case (e.Tag == "") == (len(e.Exports) == 0):
		r.about("existing", "does not name one resource", mend)
	case e.Tag != "" && (!ok || name == ""):
		r.about("existing.tag", "is no tag", `write "NAME=VALUE", in quotes`)
	case strings.HasPrefix(strings.ToLower(name), "aws:") || strings.HasPrefix(name, "longshore:"):
		r.about("existing.tag", "is a tag that others set", "tag the resource with a name of your own")
	case (e.Tag == "") != (e.Type == ""):
		r.about("existing.type", "is given without a tag, or a tag without it", mend)
	}
	for _, unused := range []string{"template", "permissions", "parameters", "minutes"} {
		if given[unused] != nil {
			r.about(unused, "means nothing for what exists already", "leave it out, or leave out existing")
		}
	}
	return e
}
