package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// An exception is a rule of cdk-nag that a resource breaks on purpose.
type exception struct {
	rule string
	// reason says it in plain words, for whoever reads the template.
	reason string
	// findings are the ones that are meant, of a rule that tells them apart.
	findings []string
}

// merged puts exceptions to one rule together: a resource says a rule once.
func merged(exceptions []exception) (out []exception) {
	for _, e := range exceptions {
		if at := slices.IndexFunc(out, func(o exception) bool { return o.rule == e.rule }); at >= 0 {
			out[at].reason += " " + e.reason
			out[at].findings = slices.Concat(out[at].findings, e.findings)
			continue
		}
		out = append(out, e)
	}
	return out
}

// except writes exceptions to the resource itself, where cdk-nag and readers of
// the template find them; CloudFormation takes no notice. It is called once
// for a resource, and the tests hold every exception to be needed.
func except(of constructs.IConstruct, exceptions ...exception) {
	var rules []map[string]any
	for _, e := range exceptions {
		rule := map[string]any{"id": e.rule, "reason": e.reason}
		if e.findings != nil {
			rule["applies_to"] = e.findings
		}
		rules = append(rules, rule)
	}
	of.Node().DefaultChild().(awscdk.CfnResource).AddMetadata(new("cdk_nag"), map[string]any{"rules_to_suppress": rules})
}
