package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/longshore/longshore/internal/test/expect"
)

// inspected makes a stack and has cdk-nag look at all of it.
func inspected(t *testing.T, context map[string]any, props cdknag.NagPackProps) awscdk.Stack {
	t.Helper()
	stack := expect.Get(build(context))(t, "making the stack")
	props.Reports = new(false)
	awscdk.Aspects_Of(stack).Add(cdknag.NewAwsSolutionsChecks(&props), nil)
	return stack
}

// ruled is how cdk-nag begins: a rule and, of some rules, the finding.
var ruled = regexp.MustCompile(`^(AwsSolutions-[A-Z0-9]+(\[.*?\])?): `)

// findings are what is wrong, as "path rule" or "path rule[finding]", in order. What is not of a rule, such as that one could
// not be checked, is given as it is.
func findings(t *testing.T, stack awscdk.Stack) []string {
	t.Helper()
	said, every, whatever := assertions.Annotations_FromStack(stack), new("*"), assertions.Match_AnyValue()
	// The type that CDK gives them is deprecated, its JSON is not.
	all := slices.Concat(*said.FindError(every, whatever), *said.FindWarning(every, whatever))
	text := expect.Get(json.Marshal(all))(t, "encoding the messages")
	var messages []struct {
		ID    string
		Entry struct{ Data any }
	}
	expect.OK(t, json.Unmarshal(text, &messages), "decoding the messages")
	var out []string
	for _, m := range messages {
		what := fmt.Sprint(m.Entry.Data)
		if rule := ruled.FindStringSubmatch(what); rule != nil {
			what = rule[1]
		}
		out = append(out, m.ID+" "+what)
	}
	slices.Sort(out)
	return out
}

// exceptions are what resources say they break on purpose, in the same form.
func exceptions(t *testing.T, stack awscdk.Stack) []string {
	t.Helper()
	var out []string
	for _, c := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		resource, ok := c.(awscdk.CfnResource)
		if !ok {
			continue
		}
		rules, _ := at(resource.GetMetadata(new("cdk_nag")), "rules_to_suppress").([]any)
		for _, r := range rules {
			rule := "/" + *resource.Node().Path() + " " + fmt.Sprint(at(r, "id"))
			if reason, _ := at(r, "reason").(string); len(reason) < 60 {
				t.Errorf("%s: %q is no reason", rule, reason)
			}
			among, _ := at(r, "applies_to").([]any)
			for _, finding := range among {
				out = append(out, fmt.Sprintf("%s[%v]", rule, finding))
			}
			if len(among) == 0 {
				out = append(out, rule)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Without the exceptions, cdk-nag finds exactly them: each finding has one, and none is about something that was mended.
func TestEveryFindingIsAnException(t *testing.T) {
	told := map[string]any{ContextAlarmTopic: "arn:aws:sns:eu-central-1:111122223333:operators"} // else there is a warning
	for name, context := range map[string]map[string]any{
		"Usual": told, "Chosen": choices, "VPC": inside, "Servers": hostedInside, "Services": serving,
	} {
		t.Run(name, func(t *testing.T) {
			raw := inspected(t, context,
				cdknag.NagPackProps{SuppressionIgnoreCondition: cdknag.NewSuppressionIgnoreAlways(new("to see all"))})
			found := findings(t, raw)
			if len(found) == 0 {
				t.Fatal("cdk-nag finds nothing at all: it has not looked")
			}
			expect.Same(t, "-exceptions that are not needed +findings without an exception", exceptions(t, raw), found)
			// cdk-nag itself reads them as we do.
			expect.Same(t, "findings", nil, findings(t, inspected(t, context, cdknag.NagPackProps{})))
		})
	}
}
