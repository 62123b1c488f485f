package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// An exception is a rule of cdk-nag that a resource breaks on purpose.
type exception struct {
	rule string
	// reason is the explanation for readers of the template, in plain words.
	reason string
	// findings are the intended findings, for a rule that has several.
	findings []string
}

// except writes exceptions to the resource itself, where cdk-nag and readers of the template find
// them; CloudFormation ignores them. It must be called once for each resource. The tests check that
// every exception is needed.
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
