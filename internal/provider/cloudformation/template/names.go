package template

import (
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
)

// names refuses physical names: two instances would want the same name, a replacement could not be
// made next to the resource that it replaces, and rights are limited to names that CloudFormation
// derives from the stack's name. A name that a type requires must be derived from the stack's name,
// too.
func (c *checker) names(name string, r resource, s schema) {
	for property, must := range sorted.Map(s.names) {
		v, given := r.properties[property]
		at := "/Resources" + slot(name) + "/Properties" + slot(property)
		switch {
		case !given:
		case !must && !ownNames[r.kind]:
			c.wrong(at, name+" has a name of its own, "+property,
				"remove it: CloudFormation derives one from the stack's name")
		case !c.ofStack(v):
			c.wrong(at, property+" of "+name+" does not contain the stack's name",
				`write !Ref AWS::StackName, or !Sub "${AWS::StackName}-…" with nothing of a user's in it`)
		}
	}
}

// ownNames lists the types whose resources a template may name, from the stack's name.
// CloudFormation, or for log groups MiniStack, does not begin the name that it generates with the
// stack's name, or has to shorten it, as for a queue: rights could not be limited to such a name.
// The generated name of a topic would lack the .fifo that SNS requires.
var ownNames = map[string]bool{
	"AWS::SQS::Queue": true, "AWS::SNS::Topic": true, "AWS::SecretsManager::Secret": true,
	"AWS::SSM::Parameter": true, "AWS::Logs::LogGroup": true,
	"AWS::ElastiCache::ReplicationGroup": true, "AWS::ElastiCache::CacheCluster": true,
}

// ofStack reports whether a value is derived from the stack's name, and contains no value of users
// or platforms.
func (c *checker) ofStack(v any) bool {
	if name, argument, is := call(v); is && name == "Fn::If" {
		list, _ := argument.([]any)
		return len(list) == 3 && c.ofStack(list[1]) && c.ofStack(list[2])
	}
	names := allRefs(v)
	return slices.Contains(names, "AWS::StackName") && !slices.ContainsFunc(names, func(ref string) bool {
		return c.isForeign(ref) || !strings.HasPrefix(ref, "AWS::") && c.declared[ref].kind == ""
	})
}

// allRefs returns the names that the functions in a value refer to.
func allRefs(v any) (all []string) {
	walk(v, "", func(_ string, v any) { all = append(all, refs(v)...) })
	return all
}

// refs returns the names that a function itself refers to with Ref, GetAtt or Sub.
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
