package template

import (
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
)

// exports refuses a fixed name of an export: a region could have no second instance.
func (c *checker) exports() {
	for name, output := range sorted.Map(c.outputs) {
		export, given := output["Export"]
		if object, _ := export.(mapping); given && !c.ofStack(object["Name"]) {
			c.wrong("/Outputs"+slot(name)+"/Export",
				"the export of output "+name+" has a name that is not made of the stack's",
				"write !Sub \"${AWS::StackName}-…\", or remove the export: bindings need none")
		}
	}
}

// names refuses physical names: two instances would want the same, a replacement could
// not be made beside what it replaces, and rights end at names that CloudFormation
// makes of the stack's. A name that a type must have is made of the stack's, too.
func (c *checker) names(name string, r resource, s schema) {
	for property, must := range sorted.Map(s.names) {
		v, given := r.properties[property]
		at := "/Resources" + slot(name) + "/Properties" + slot(property)
		switch {
		case !given:
		case !must && !ownNames[r.kind]:
			c.wrong(at, fmt.Sprintf("%s has a name of its own, %s", name, property),
				"remove it: CloudFormation makes one of the stack's name")
		case !c.ofStack(v):
			c.wrong(at, fmt.Sprintf("%s of %s is not made of the stack's name", property, name),
				`write !Ref AWS::StackName, or !Sub "${AWS::StackName}-…" with nothing of a user's in it`)
		}
	}
}

// ownNames are types whose names CloudFormation, or for log groups MiniStack, does not
// begin with the stack's name when it makes them, or has to cut, as that of a queue:
// rights could not end at it. That of a topic would lack the .fifo that SNS asks for.
var ownNames = map[string]bool{
	"AWS::SQS::Queue": true, "AWS::SNS::Topic": true, "AWS::SecretsManager::Secret": true,
	"AWS::SSM::Parameter": true, "AWS::Logs::LogGroup": true,
	"AWS::ElastiCache::ReplicationGroup": true, "AWS::ElastiCache::CacheCluster": true,
}

// ofStack reports whether a value is made of the stack's name, and of no value of users or
// platforms.
func (c *checker) ofStack(v any) bool {
	if name, argument, is := call(v); is && name == "Fn::If" {
		list, _ := argument.([]any)
		return len(list) == 3 && c.ofStack(list[1]) && c.ofStack(list[2])
	}
	uses := false
	own := true
	walk(v, "", func(_ string, v any) {
		for _, ref := range refs(v) {
			uses = uses || ref == "AWS::StackName"
			s := c.Parameters[ref]
			own = own && s.Parameter == "" && s.Context == "" && (strings.HasPrefix(ref, "AWS::") || c.declared[ref].kind != "")
		}
	})
	return uses && own
}

// refs gives the names that one function refers to, by Ref, GetAtt or Sub, itself.
func refs(v any) []string {
	name, argument, ok := call(v)
	switch {
	case !ok:
	case name == "Ref":
		text, _ := argument.(string)
		return []string{text}
	case name == "Fn::GetAtt":
		if list, _ := argument.([]any); len(list) > 0 {
			argument = list[0]
		}
		text, _ := argument.(string)
		text, _, _ = strings.Cut(text, ".")
		return []string{text}
	case name == "Fn::Sub":
		text, own := substitution(argument)
		names, _ := placeholders(text)
		var all []string
		for _, name := range names {
			if _, is := own[name]; !is {
				name, _, _ = strings.Cut(name, ".")
				all = append(all, name)
			}
		}
		return all
	}
	return nil
}
