package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
)

// A condition is the condition of a statement: all its tests must hold. The case of operators and
// keys does not matter.
type condition []test

type test struct {
	operator, key string // the operator in lower case
	values        any
}

func conditionOf(written any) (c condition) {
	operators, _ := written.(mapping)
	for operator, keys := range sorted.Map(operators) {
		keys, _ := keys.(mapping)
		for key, values := range sorted.Map(keys) {
			c = append(c, test{strings.ToLower(operator), key, values})
		}
	}
	return c
}

// bounds reports whether the condition limits a key to chosen values. A test that holds without the
// key, or for other values, does not. For the tags of a resource, it is enough if one of several
// values fits; for the arguments of a call, it is not.
func (c condition) bounds(key func(lower string) bool, oneIsEnough bool) bool {
	return slices.ContainsFunc(c, func(t test) bool {
		if t.operator == "null" || strings.Contains(t.operator, "not") || strings.HasSuffix(t.operator, "ifexists") ||
			strings.HasPrefix(t.operator, "foranyvalue:") && !oneIsEnough {
			return false
		}
		chosen := texts(t.values)
		return key(strings.ToLower(t.key)) && len(chosen) > 0 && !slices.ContainsFunc(chosen, isAny) &&
			(!t.ofAll() || c.present(t.key))
	})
}

// ofAll reports whether the test also holds for a call that lacks the key.
func (t test) ofAll() bool { return strings.HasPrefix(t.operator, "forallvalues:") }

// isAny reports whether a value of a condition limits nothing.
func isAny(value string) bool { return strings.Trim(value, "*?") == "" || isEverything(value) }

// present reports whether the condition requires that a call has the key.
func (c condition) present(key string) bool {
	return slices.ContainsFunc(c, func(t test) bool {
		return t.operator == "null" && strings.EqualFold(t.key, key) && strings.Trim(fmt.Sprint(t.values), "[]") == "false"
	})
}

// vacuous returns the keys that are tested with ForAllValues, without a test that they are present.
func (c condition) vacuous() (all []string) {
	for _, t := range c {
		if t.ofAll() && !c.present(t.key) {
			all = append(all, t.key)
		}
	}
	return all
}

// ofResources reports whether a key, in lower case, tells one resource from others: the tags of an
// existing or new resource do, and the aliases of keys.
func ofResources(key string) bool {
	_, name, _ := strings.Cut(key, ":")
	return strings.HasPrefix(name, "resourcetag/") || strings.HasPrefix(name, "requesttag/") ||
		key == "kms:resourcealiases" || key == "kms:requestalias"
}

// Deputies are actions that make another service act, with rights that the caller lacks: a queue
// that trusts SNS takes messages from any topic. Each has the condition keys that limit it; nil if AWS
// has none.
var deputies = map[string][]string{
	"events:PutTargets":               {"events:TargetArn"},
	"kms:CreateGrant":                 {"kms:GranteePrincipal"},
	"lambda:CreateEventSourceMapping": {"lambda:FunctionArn"},
	"logs:PutSubscriptionFilter":      nil,
	"s3:PutBucketLogging":             nil,
	"s3:PutBucketNotification":        nil,
	"s3:PutInventoryConfiguration":    nil,
	"secretsmanager:RotateSecret":     {"secretsmanager:RotationLambdaARN"},
	"sns:SetSubscriptionAttributes":   nil,
	"sns:Subscribe":                   {"sns:Endpoint", "sns:Protocol"},
	"sqs:SetQueueAttributes":          nil,
}

// deputies refuses actions with which other services would act for a binding anywhere.
func (s statement) deputies() {
	for i, action := range s.actions {
		for deputy, keys := range sorted.Map(deputies) {
			_, verb, _ := strings.Cut(action, ":")
			wide := strings.Trim(verb, "*") == "" // broad refuses it
			if wide || !covers(action, deputy) {
				continue
			}
			if len(keys) == 0 {
				s.doubtful(nth("/Action", i),
					deputy+" has another service act for the binding, and no condition of AWS bounds what that reaches",
					"leave it to the template")
			}
			missing := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
				return s.condition.bounds(func(lower string) bool { return lower == strings.ToLower(key) }, false)
			})
			if len(missing) > 0 {
				s.wrong(nth("/Action", i),
					deputy+" has another service act for the binding, on anything that trusts that service",
					"bound it by a Condition on "+strings.Join(missing, " and "))
			}
		}
	}
}
