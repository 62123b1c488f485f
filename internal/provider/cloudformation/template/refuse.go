package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// maxTemplate is the size of the largest template that CloudFormation reads from S3, in bytes.
const maxTemplate = 1_000_000

// refuse notes everything that no template of an offering may have.
func (c *checker) refuse() {
	for name := range sorted.Map(c.root) {
		if !slices.Contains(sections, name) {
			c.wrong(slot(name), name+" is not allowed in the template of an offering",
				"remove it: transforms, macros, hooks and rules are not allowed")
		}
	}
	if len(c.resources) == 0 {
		c.wrong("/Resources", "the template has no resources", "write Resources: and below it what an instance is made of")
	}
	for name, r := range sorted.Map(c.resources) {
		c.resource(name, r)
	}
	walk(c.root, "", func(at string, v any) {
		if text, _ := v.(string); strings.ContainsFunc(text, plan.Unwritable) {
			c.wrong(at, "the text has a control character",
				"remove it: the broker cannot read what AWS reports about such a stack")
		}
		object, _ := v.(mapping)
		for name := range sorted.Map(object) {
			if strings.HasPrefix(name, "Fn::") && (!slices.Contains(tags, "!"+name[len("Fn::"):]) || name == "Fn::Transform") {
				c.wrong(at+slot(name), name+" is no function of templates without transforms", "write its result")
			}
		}
	})
	c.references()
	c.dynamic()
	c.parameterTypes()
	c.exposed()
	if len(encoded(c.value)) > maxTemplate {
		c.wrong("", fmt.Sprintf("the template is larger than %d bytes of JSON", maxTemplate),
			"shorten it, or offer its parts separately")
	}
}

// attributes lists the members that a resource may have besides its properties.
var attributes = []string{
	"Type", "Properties", "Condition", "DependsOn", "Metadata", "DeletionPolicy", "UpdateReplacePolicy", "CreationPolicy",
	"UpdatePolicy",
}

func (c *checker) resource(name string, r resource) {
	at := "/Resources" + slot(name)
	for member := range sorted.Map(r.members) {
		if !slices.Contains(attributes, member) {
			c.wrong(at+slot(member), member+" is no attribute of a resource", "remove it, or put it below Properties")
		}
	}
	s, known := schemaOf(r.kind)
	switch {
	case r.kind == "":
		c.wrong(at, "resource "+name+" has no Type", "write one, such as AWS::SQS::Queue")
		return
	case r.kind == "AWS::CloudFormation::Stack":
		c.wrong(at+"/Type", name+" is a nested stack",
			"write its resources into this template: what is nested has no service role and no digest of its own")
		return
	case strings.HasPrefix(r.kind, "AWS::CloudFormation::") && !isCustom(r.kind) &&
		!strings.HasPrefix(r.kind, "AWS::CloudFormation::Wait"):
		c.wrong(at+"/Type", name+" is of "+r.kind+", which changes more than its stack", "remove it")
		return
	case r.kind == "AWS::IAM::AccessKey":
		c.wrong(at+"/Type", name+" is an access key", "remove it: each binding gets a principal of its own")
	case !known && strings.HasPrefix(r.kind, "AWS::") && suggest.Nearest(r.kind, kinds()) != "":
		c.wrong(at+"/Type", r.kind+" is not a known type of AWS",
			suggest.Meant(r.kind, kinds(), ""))
	case !known:
		c.doubtful(at+"/Type", r.kind+" is not known, so no property of it counts as changeable in place",
			"leave parameters of it out of updates")
	}
	c.names(name, r, s)
	if policy, given := r.members["DeletionPolicy"]; given && policy != "Delete" || !given && snapshots(r) {
		c.wrong(at+"/DeletionPolicy", name+" outlives its stack, and nobody would find it again",
			"write DeletionPolicy: Delete, and on_delete: retain in the settings of plans whose instances are to be retained")
	}
	if isCustom(r.kind) {
		timeout, _ := scalarText(r.properties["ServiceTimeout"])
		if n, err := strconv.Atoi(timeout); err != nil || n < 1 || n > 3600 {
			c.wrong(at+"/Properties/ServiceTimeout", name+" is a custom resource without a ServiceTimeout",
				"write the seconds, 1 to 3600, after which it has failed: a stack hangs for an hour otherwise")
		}
	}
	if r.kind == "AWS::IAM::Role" || r.kind == "AWS::IAM::User" {
		c.bounded(name, r)
	}
}

// snapshots reports whether CloudFormation leaves a snapshot by default, as for databases of RDS.
func snapshots(r resource) bool {
	return r.kind == "AWS::RDS::DBCluster" || r.kind == "AWS::RDS::DBInstance" && r.properties["DBClusterIdentifier"] == nil
}

// bounded refuses a principal without the offering's boundary: the service role may not make it.
func (c *checker) bounded(name string, r resource) {
	at, named := "/Resources"+slot(name)+"/Properties", plan.Scope("").Boundary(c.Offering, "")
	mend := "give it the offering's: without one, the service role may not make it"
	boundary, given := r.properties["PermissionsBoundary"]
	if !given {
		c.wrong(at, name+" has no PermissionsBoundary", mend)
		return
	}
	is := false
	walk(c.resolve(boundary), "", func(_ string, v any) {
		text, _ := v.(string)
		is = is || strings.Contains(text, named)
	})
	if !is {
		c.wrong(at+"/PermissionsBoundary", name+" has a PermissionsBoundary that is not the offering's",
			"write !Sub [\"arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/longshore/${Scope}-fixed/longshore-${Scope}"+named+
				"${AWS::Region}\", {Scope: !Select [1, !Split [\"-\", !Ref AWS::StackName]]}]")
	}
}

func (c *checker) warn(e *advice.Error) {
	known := false
	for i, s := range c.Silenced {
		if s.About != "" && strings.Contains(e.Error(), s.About) {
			c.Silenced[i].met, known = true, true
		}
	}
	if !known {
		c.Warn(*e)
	}
}

// unmet warns of silences that match no warning: they would hide the next one that they match.
func (c *checker) unmet() {
	for _, s := range c.Silenced {
		if !s.met {
			c.Warn(*advice.For("warnings", fmt.Sprintf("silence %q, which is in no warning of this plan", s.About), "remove it"))
		}
	}
}

var pseudo = []string{
	"AWS::AccountId", "AWS::NoValue", "AWS::NotificationARNs", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName",
	"AWS::URLSuffix",
}

// references refuses names that the template does not declare.
func (c *checker) references() {
	known := slices.Concat(pseudo, slices.Collect(maps.Keys(c.declared)), slices.Collect(maps.Keys(c.resources)))
	slices.Sort(known)
	conditions := slices.Sorted(maps.Keys(c.conditions))
	missing := func(at, name string, of []string) {
		c.wrong(at, fmt.Sprintf("%q is not in the template", name),
			suggest.Meant(name, of, "declare it, or remove what refers to it"))
	}
	for _, section := range []string{"Conditions", "Resources", "Outputs"} {
		walk(c.root[section], slot(section), func(at string, v any) {
			for _, ref := range refs(v) {
				if !slices.Contains(known, ref) {
					missing(at, ref, known)
				}
			}
			name, argument, _ := call(v)
			if list, _ := argument.([]any); name == "Fn::If" && len(list) > 0 {
				argument = list[0]
			}
			if text, is := argument.(string); is && (name == "Fn::If" || name == "Condition") &&
				!slices.Contains(conditions, text) {
				missing(at, text, conditions)
			}
		})
	}
	for name, r := range sorted.Map(c.resources) {
		if r.condition != "" && !slices.Contains(conditions, r.condition) {
			missing("/Resources"+slot(name)+"/Condition", r.condition, conditions)
		}
	}
}

// plainTypes lists the types that parameters of users may have: CloudFormation looks up values of
// all other types in the account.
var plainTypes = []string{"String", "Number", "CommaDelimitedList", "List<Number>"}

func (c *checker) parameterTypes() {
	for name, p := range sorted.Map(c.declared) {
		at := "/Parameters" + slot(name)
		switch {
		case p.kind == "":
			c.wrong(at, "parameter "+name+" has no Type", "write one, such as String")
		case strings.Contains(p.kind, "SSM::Parameter") && c.isForeign(name):
			c.wrong(at+"/Type", "parameter "+name+" is read from Systems Manager by a name that a user gives",
				"make it a String")
		case !slices.Contains(plainTypes, p.kind) && c.isForeign(name):
			c.wrong(at+"/Type", "parameter "+name+" names something in the account, and users choose it",
				"make it one of "+strings.Join(plainTypes, ", ")+", or let the operator choose: target, or value")
		}
		if def, _ := p.fallback.(string); strings.Contains(def, "{{resolve:") {
			c.wrong(at+"/Default", "a default is a dynamic reference", "write it into the template, where it is used")
		}
	}
}

// exposed refuses outputs that show a secret, or are exported by a name that is not an instance's own.
func (c *checker) exposed() {
	for name, output := range sorted.Map(c.outputs) {
		// With a fixed name, a region could have no second instance.
		export, given := output["Export"]
		if object, _ := export.(mapping); given && !c.ofStack(object["Name"]) {
			c.wrong("/Outputs"+slot(name)+"/Export",
				"the export of output "+name+" has a name that does not contain the stack's name",
				"write !Sub \"${AWS::StackName}-…\", or remove the export: bindings need none")
		}
		walk(output["Value"], "/Outputs"+slot(name)+"/Value", func(at string, v any) {
			for _, ref := range refs(v) {
				if c.declared[ref].secret {
					c.wrong(at, "output "+name+" shows the secret parameter "+ref,
						"remove it: outputs can be read by all who see the stack")
				}
			}
		})
	}
}

// outputNames returns the names of the outputs: true for an output that every instance has, false
// for one whose condition is open or fails.
func (c *checker) outputNames() (known map[string]bool) {
	known = values(nil)
	for name, output := range c.outputs {
		if known[name] {
			c.wrong("/Outputs"+slot(name), "output "+name+" has the name of a value that every text may use",
				"give it another name")
		}
		condition, _ := output["Condition"].(string)
		known[name] = condition == "" || c.condition(condition) == true
	}
	return known
}

// fill checks the names in ${NAME} of a text, which is later filled in with outputs.
func fill(text string, known map[string]bool, wrong func(what, mend string)) {
	for _, name := range plan.Names(text) {
		sure, there := known[name]
		switch {
		case !there:
			wrong(fmt.Sprintf("names %q, which is no output", name),
				suggest.Meant(name, slices.Sorted(maps.Keys(known)), "add it to the template's Outputs"))
		case !sure:
			wrong(fmt.Sprintf("names the output %q, which not every instance of the plan has", name),
				"give it another value instead of a Condition")
		}
	}
	if strings.Count(text, "${") != strings.Count(text, "}") && len(plan.Names(text)) == 0 && strings.Contains(text, "${") {
		wrong("has a ${ that is not closed", "write ${NAME}")
	}
}
