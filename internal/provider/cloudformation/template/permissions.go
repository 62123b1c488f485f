package template

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A statement is a statement of a policy, with its place in the document.
type statement struct {
	*document
	at        string
	allows    bool
	actions   []string
	resources []string
	condition condition
	more      []string // actions to be added
}

// wrong notes a problem of a member of the statement.
func (s statement) wrong(member, what, mend string) { s.document.wrong(s.at+member, what, mend) }

// doubtful warns of a member of the statement.
func (s statement) doubtful(member, what, mend string) { s.document.doubtful(s.at+member, what, mend) }

// statements reads the policy document of an identity. It notes members that such a document cannot
// have.
func (d *document) statements() (all []statement) {
	root, _ := d.value.(mapping)
	if root["Version"] != "2012-10-17" {
		d.wrong("/Version", "the policy does not have the version 2012-10-17",
			`write "Version": "2012-10-17": in an older one, ${…} means nothing`)
	}
	list := items(root["Statement"])
	_, several := root["Statement"].([]any)
	if len(list) == 0 {
		d.wrong("/Statement", "the policy has no statements", "list them below Statement")
	}
	sids := map[string]bool{}
	for i, item := range list {
		at := "/Statement"
		if several {
			at = nth(at, i)
		}
		object, _ := item.(mapping)
		s := statement{document: d, at: at, allows: object["Effect"] == "Allow", actions: texts(object["Action"]),
			resources: texts(object["Resource"])}
		s.condition = conditionOf(object["Condition"])
		for member := range sorted.Map(object) {
			if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition"}, member) &&
				(s.allows || !strings.HasPrefix(member, "Not")) {
				s.wrong(slot(member), member+" is not allowed in a statement here",
					"name the actions and resources that are meant")
			}
		}
		sid, isText := object["Sid"].(string)
		switch {
		case object["Sid"] != nil && !isText || !sidOfIAM.MatchString(sid):
			s.wrong("/Sid", fmt.Sprintf("%q is no Sid that IAM takes", fmt.Sprint(object["Sid"])),
				"write letters from A to Z and digits alone, or leave it out")
		case sids[sid]:
			s.wrong("/Sid", fmt.Sprintf("the Sid %q is given twice, which IAM refuses", sid),
				"give each statement one of its own")
		}
		sids[sid] = sid != "" // several statements may have an empty one
		if object["Effect"] != "Allow" && object["Effect"] != "Deny" {
			s.wrong("", "a statement has no effect", "write Allow or Deny")
		}
		if s.allows && (len(s.actions) == 0 || len(s.resources) == 0) {
			s.wrong("", "a statement allows no action, or has no resource", "write both as texts, or as lists of them")
		}
		for _, key := range s.condition.vacuous() {
			if s.allows {
				s.wrong("/Condition", "ForAllValues holds for a call that has no "+key,
					`add "Null": {"`+key+`": "false"}`)
			}
		}
		all = append(all, s)
	}
	return all
}

// sidOfIAM matches the Sids that IAM takes. In policies of resources, others are possible.
var sidOfIAM = regexp.MustCompile(`^[A-Za-z0-9]*$`)

func texts(v any) (all []string) {
	for _, item := range items(v) {
		text, ok := item.(string)
		if !ok {
			return nil
		}
		all = append(all, text)
	}
	return all
}

// broad refuses actions that are surely too wide to allow, and warns of patterns.
func (s statement) broad() {
	for i, action := range s.actions {
		service, verb, ok := strings.Cut(action, ":")
		switch {
		case action == "*" || ok && strings.Trim(verb, "*") == "" || strings.ContainsAny(service, "*?"):
			s.wrong(nth("/Action", i), fmt.Sprintf("%q allows everything of a service", action),
				"name the actions that are needed")
		case !ok:
			s.wrong("/Action", fmt.Sprintf("%q is no action", action), "write SERVICE:ACTION")
		case strings.ContainsAny(verb, "*?"):
			s.doubtful(nth("/Action", i), fmt.Sprintf("%q may allow more than is needed, and still more as AWS "+
				"adds actions", action), "name the actions")
		}
	}
}

// withoutResources reports whether an action knows no resources: such actions list resources, or
// make one that has no name yet.
func withoutResources(action string) bool {
	lower := strings.ToLower(action)
	service, verb, _ := strings.Cut(lower, ":")
	for _, start := range []string{"list", "describe", "getrandom"} {
		if strings.HasPrefix(verb, start) {
			return service != "s3" || verb == "listallmybuckets" // all other list actions of S3 need a bucket
		}
	}
	return plan.Unnamed(action) || lower == "ec2:createtags"
}

// everything refuses statements that allow an action on everything, though the action knows
// resources.
func (s statement) everything() {
	if s.condition.bounds(ofResources, true) || !slices.ContainsFunc(s.resources, isEverything) {
		return
	}
	for _, action := range s.actions {
		if !withoutResources(action) {
			s.wrong("/Resource", action+" is allowed on everything in the account",
				"name the resources, or bound it by a Condition, such as one on aws:ResourceTag")
			return
		}
	}
}

var (
	filled    = regexp.MustCompile(`\$\{[^}]*\}`)
	unlimited = regexp.MustCompile(`^(arn:[^:]*:[^:]*:[^:]*:[^:]*:([a-z-]*[/:])?)?[*?:]+$`)
)

// isEverything reports whether a resource matches all resources of a service, or all of a kind.
func isEverything(resource string) bool {
	return unlimited.MatchString(filled.ReplaceAllStringFunc(resource, func(name string) string {
		return strings.Trim(name, "${}:")[:1]
	}))
}

// guarded lists the actions, besides all of IAM and STS, with which a service role could reach
// resources of others. They need resources with the broker's prefix.
var guarded = []string{
	"secretsmanager:getsecretvalue", "secretsmanager:batchgetsecretvalue", "ssm:getparameter", "ssm:getparameters",
	"ssm:getparametersbypath",
	"ssm:getparameterhistory", "lambda:invokefunction", "lambda:invokeasync",
}

func isGuarded(action string) bool {
	lower := strings.ToLower(action)
	return strings.HasPrefix(lower, "iam:") || strings.HasPrefix(lower, "sts:") ||
		slices.ContainsFunc(guarded, func(g string) bool { return covers(action, g) })
}

// oneFunction matches a resource that names one function: an operator's function that makes custom
// resources for many instances has a name without the prefix.
var oneFunction = regexp.MustCompile(`^arn:[^*?]+:lambda:[^*?]+:function:[A-Za-z0-9_-]+(:[A-Za-z0-9_-]+)?$`)

func isInvoke(action string) bool { return strings.EqualFold(action, "lambda:InvokeFunction") }

// prefix stands in permissions for the beginning of all names that the broker gives.
const prefix = "${" + plan.ValuePrefix + "}"

// serviceRole checks the permissions of CloudFormation for the offering against the calls that its
// handlers make for the template's resources.
func (c *checker) serviceRole(d *document) {
	all := d.statements()
	known := values(nil)
	delete(known, plan.ValueSuffix)
	delete(known, plan.ValueSpacePrefix)
	for _, s := range all {
		if s.allows {
			s.broad()
			s.everything()
		}
		for _, resource := range s.resources {
			fill(resource, known, func(what, _ string) {
				s.wrong("/Resource", fmt.Sprintf("%q %s", resource, what),
					"write ${Prefix}, ${AWS::Region}, ${AWS::AccountId} and ${AWS::Partition} only")
			})
			if s.allows && !strings.Contains(resource, prefix) && slices.ContainsFunc(s.actions, func(action string) bool {
				return isGuarded(action) && !(isInvoke(action) && oneFunction.MatchString(resource))
			}) {
				s.wrong("/Resource", fmt.Sprintf("%q lets the role reach things of others", resource),
					"put "+prefix+" into the name")
			}
		}
	}
	c.missing(d, all)
	c.foreignServices(d, all)
}

// covers reports whether a pattern matches an action; case does not matter.
func covers(pattern, action string) bool {
	return iampolicy.Like(strings.ToLower(action), strings.ToLower(pattern))
}

// covers reports whether one of the statement's actions matches an action.
func (s statement) covers(action string) bool {
	return slices.ContainsFunc(s.actions, func(pattern string) bool { return covers(pattern, action) })
}

// allowed reports whether a statement allows an action on something.
func allowed(all []statement, action string) bool {
	return slices.ContainsFunc(all, func(s statement) bool { return s.allows && s.covers(action) })
}

// missing compares permissions with the calls of CloudFormation's handlers. It refuses permissions
// that lack all calls that make, or all that remove, a resource. The need for other calls depends
// on the properties that a template sets, so it warns of them.
func (c *checker) missing(d *document, all []statement) {
	for _, kind := range unique(slices.Collect(maps.Values(c.Resources))) {
		s, _ := schemaOf(kind) // nothing is known to be called for a type that is not known
		for _, calls := range [][]string{s.create, s.remove} {
			if len(calls) > 0 && !slices.ContainsFunc(calls, func(a string) bool { return allowed(all, a) }) {
				d.wrong("/Statement", "nothing allows CloudFormation to make and remove "+kind,
					"of what it calls, allow what the template needs: "+list(slices.Concat(s.create, s.remove)))
				break
			}
		}
		if lacks := without(all, s.read); len(lacks) > 0 {
			d.doubtful("/Statement", "CloudFormation reads "+kind+" by "+list(lacks),
				"allow it: CloudFormation cannot make some types unless it can read all of them")
		}
		if lacks := without(all, slices.Concat(s.create, s.update, s.remove)); len(lacks) > 0 {
			d.doubtful("/Statement", "for "+kind+", CloudFormation may also call "+list(lacks),
				"allow what the template's properties need of it")
		}
	}
}

// without returns those calls that no statement allows.
func without(all []statement, calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return allowed(all, call) })
}

// unique sorts texts, and removes duplicates.
func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

func list(all []string) string { return strings.Join(unique(all), ", ") }

// foreignServices warns of actions that no handler of the template's resources calls.
func (c *checker) foreignServices(d *document, all []statement) {
	var calls []string
	for _, r := range c.resources {
		s, _ := schemaOf(r.kind)
		if len(s.create) == 0 {
			return // its needs are unknown
		}
		calls = append(calls, s.calls()...)
	}
	for _, s := range all {
		for i, action := range s.actions {
			if s.allows && !slices.ContainsFunc(calls, func(call string) bool { return covers(action, call) }) {
				s.doubtful(nth("/Action", i), fmt.Sprintf("CloudFormation never calls %q for the template's resources", action),
					"remove it, unless bindings need its resource: these permissions bound bindings, too")
			}
		}
	}
}

// noBindings lists the services whose actions would let a binding extend its own rights.
var noBindings = []string{"iam", "sts", "organizations", "cloudformation", "account"}

// bindingPolicy checks the policy of a binding: it should name actions, on resources of the
// instance.
func (c *checker) bindingPolicy(d *document, known map[string]bool) {
	all := d.statements()
	c.proves(all)
	for _, s := range all {
		if !s.allows {
			continue
		}
		s.broad()
		s.everything()
		s.deputies()
		for i, action := range s.actions {
			if service, _, _ := strings.Cut(action, ":"); slices.Contains(noBindings, strings.ToLower(service)) {
				s.wrong(nth("/Action", i), fmt.Sprintf("%q would let a binding raise its own rights", action), "remove it")
			}
		}
		for i, resource := range s.resources {
			at := nth("/Resource", i)
			names := plan.Names(resource)
			own := slices.ContainsFunc(names, func(name string) bool { return !values(nil)[name] })
			switch {
			case own || strings.Trim(resource, "*") == "":
			case slices.Contains(names, plan.ValuePrefix), slices.Contains(names, plan.ValueSpacePrefix):
				s.wrong(at, fmt.Sprintf("%q matches all instances", resource),
					"name the instance's own, by an output: ${NAME}")
			default:
				s.doubtful(at, fmt.Sprintf("%q is the same for every instance", resource),
					"name the instance's own, by an output: ${NAME}")
			}
		}
	}
	walk(d.value, "", func(at string, v any) {
		if text, is := v.(string); is {
			fill(text, known, func(what, mend string) { d.wrong(at, "the policy "+what, mend) })
		}
	})
}
