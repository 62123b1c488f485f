package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A condition is that of a statement, as it is written: by operators and keys, the
// values. The case of operators and keys does not count.
type condition map[string]any

// bounds reports whether the condition holds keys to values that somebody has chosen:
// operators that are true without the key, or of others than the values, do not. That
// one of several values is as asked is enough of what a resource has, and not of what a
// call names.
func (c condition) bounds(key func(lower string) bool, oneIsEnough bool) bool {
	for operator, keys := range c {
		operator = strings.ToLower(operator)
		if operator == "null" || strings.Contains(operator, "not") || strings.HasSuffix(operator, "ifexists") ||
			strings.HasPrefix(operator, "foranyvalue:") && !oneIsEnough {
			continue
		}
		members, _ := keys.(map[string]any)
		for name, v := range members {
			chosen := texts(v)
			if !key(strings.ToLower(name)) || len(chosen) == 0 || slices.ContainsFunc(chosen, isAny) {
				continue
			}
			if !strings.HasPrefix(operator, "forallvalues:") || c.present(name) {
				return true
			}
		}
	}
	return false
}

// isAny reports whether a value of a condition is as good as none.
func isAny(value string) bool { return strings.Trim(value, "*?") == "" || isEverything(value) }

// present reports whether the condition asks that a call has the key.
func (c condition) present(key string) bool {
	for operator, keys := range c {
		members, _ := keys.(map[string]any)
		for name, v := range members {
			if strings.EqualFold(operator, "null") && strings.EqualFold(name, key) &&
				strings.Trim(fmt.Sprint(v), "[]") == "false" {
				return true
			}
		}
	}
	return false
}

// vacuous are the keys of which the condition asks something for all values, and does
// not ask that there are any.
func (c condition) vacuous() (all []string) {
	for _, operator := range slices.Sorted(maps.Keys(c)) {
		members, _ := c[operator].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if strings.HasPrefix(strings.ToLower(operator), "forallvalues:") && !c.present(key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// ofResources reports whether a key, in lower case, tells one resource from others:
// tags do, of what is there or of what is made, and the names of keys.
func ofResources(key string) bool {
	_, name, _ := strings.Cut(key, ":")
	return strings.HasPrefix(name, "resourcetag/") || strings.HasPrefix(name, "requesttag/") ||
		key == "kms:resourcealiases" || key == "kms:requestalias"
}

// A deputy is an action that has another service act, with rights which whoever calls
// it has not: a queue that trusts SNS takes what any topic sends. Each is bounded by
// keys of a condition; where AWS has none, there are no keys.
type deputy struct {
	action string
	keys   []string
}

var deputies = []deputy{
	{"events:PutTargets", []string{"events:TargetArn"}},
	{"kms:CreateGrant", []string{"kms:GranteePrincipal"}},
	{"lambda:CreateEventSourceMapping", []string{"lambda:FunctionArn"}},
	{"logs:PutSubscriptionFilter", nil},
	{"s3:PutBucketLogging", nil},
	{"s3:PutBucketNotification", nil},
	{"s3:PutInventoryConfiguration", nil},
	{"secretsmanager:RotateSecret", []string{"secretsmanager:RotationLambdaARN"}},
	{"sns:SetSubscriptionAttributes", nil},
	{"sns:Subscribe", []string{"sns:Endpoint", "sns:Protocol"}},
	{"sqs:SetQueueAttributes", nil},
}

// deputies refuses a binding what would have other services act for it anywhere.
func (c *checker) deputies(d *document, s statement) {
	for i, action := range s.actions {
		for _, one := range deputies {
			_, verb, _ := strings.Cut(action, ":")
			wide := strings.Trim(verb, "*") == "" // which is refused by itself
			if !s.allows || wide || !covers(action, one.action) {
				continue
			}
			at := s.at + "/Action" + slot(fmt.Sprint(i))
			if len(one.keys) == 0 {
				c.warn(d.problem(at,
					one.action+" has another service act for the binding, and no condition of AWS bounds what that reaches",
					"leave it to the template"))
			}
			missing := slices.DeleteFunc(slices.Clone(one.keys), func(key string) bool {
				return s.condition.bounds(func(lower string) bool { return lower == strings.ToLower(key) }, false)
			})
			if len(missing) > 0 {
				c.add(d.problem(at, one.action+" has another service act for the binding, on anything that trusts that service",
					"bound it by a Condition on "+strings.Join(missing, " and ")))
			}
		}
	}
}
