package account_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// strangers are things in the same account that no instance of this broker is: others'
// own, those of another broker, and what the broker itself stands on.
func strangers(service string) (arns []string) {
	names := []string{"payroll", "longshore-zzzzzzzz-i-x", "longshore-abcdefghi-x"}
	kinds := map[string]string{
		"s3": "arn:aws:s3:::", "sqs": ":", "sns": ":", "dynamodb": ":table/", "kinesis": ":stream/", "kms": ":key/",
		"events": ":event-bus/", "secretsmanager": ":secret:",
	}
	kind, known := kinds[service]
	if !known {
		return nil
	}
	if service == "s3" {
		names = append(names, strings.TrimPrefix(bucket, kind), "payroll/key",
			strings.TrimPrefix(bucket, kind)+"/templates/d.json")
	} else {
		kind = "arn:aws:" + service + ":eu-central-1:111122223333" + kind
	}
	for _, name := range names {
		arns = append(arns, kind+name)
	}
	return arns
}

// harmless are actions that touch nothing, or nothing that a stranger can name: the ARN of a subscription ends in random letters.
var harmless = []string{"kinesis:DescribeLimits", "secretsmanager:GetRandomPassword", "sns:Unsubscribe"}

// Offerings that ship reach nothing outside of the broker's prefix: neither CloudFormation for
// them, nor the principals of their bindings, with any policy.
func TestShippedOfferingsReachNoFurther(t *testing.T) {
	all := expect.Get(offeringfiles.Load(""))(t)
	offerings := expect.Get(account.OfferingsOf(all))(t)
	var names []string
	for _, o := range offerings {
		names = append(names, o.Name)
		t.Run(o.Name, func(t *testing.T) {
			tried := reaches(t, "the service role", account.ServiceRights(scope, o))
			tried += reaches(t, "a binding", expect.Get(account.Bounds(scope, o))(t))
			if tried < 10 {
				t.Errorf("only %d calls were tried", tried)
			}
		})
	}
	slices.Sort(names)
	want := []string{"dynamodb", "eventbridge", "kinesis", "kms", "s3", "secretsmanager", "sns", "sqs"}
	expect.Same(t, "offerings", want, names)
	resources := expect.Get(account.Resources(scope, offerings, account.Options{}))(t)
	for id, r := range resources {
		if raw, err := json.Marshal(r); err != nil || len(raw) > 9000 {
			t.Errorf("%s has %d bytes: %v", id, len(raw), err)
		}
	}
}

// A key has no name that says whose it is: its tags say which of two brokers in an account may use, change or delete it, and
// no offering's own conditions are needed for that.
func TestKeysOfAnotherBroker(t *testing.T) {
	keys := shippedOffering(t, "kms")
	tags := func(of plan.Scope) map[string][]string {
		return map[string][]string{"aws:ResourceTag/longshore:offering": {"kms"}, "aws:ResourceTag/longshore:scope": {string(of)},
			"aws:RequestTag/longshore:offering": {"kms"}}
	}
	for who, rights := range map[string][]iampolicy.Statement{
		"service role": account.ServiceRights(scope, keys), "binding": expect.Get(account.Bounds(scope, keys))(t)} {
		tried := 0
		for _, s := range rights {
			for _, action := range s.Action {
				if s.Effect != iampolicy.EffectAllow || action == "kms:CreateKey" {
					continue
				}
				tried++
				for of, want := range map[plan.Scope]bool{scope: true, other: false} {
					r := policytest.Request{Action: action, Resource: "arn:aws:kms:eu-central-1:111122223333:key/1",
						Context: tags(of)}
					if got := policytest.Allows(r, document(rights)); got != want {
						t.Errorf("a %s may %s on a key of %s: %v, want %v", who, action, of, got, want)
					}
				}
			}
		}
		if tried < 8 {
			t.Errorf("only %d actions of a %s were tried", tried, who)
		}
	}
}

// reaches tries all actions that are allowed at all on what is no instance's.
func reaches(t *testing.T, who string, rights []iampolicy.Statement) (tried int) {
	t.Helper()
	for _, s := range rights {
		for _, action := range s.Action {
			if s.Effect != iampolicy.EffectAllow || slices.Contains(harmless, action) {
				continue
			}
			if strings.Contains(action, "*") {
				t.Errorf("%s may %s: say which", who, action)
			}
			service, _, _ := strings.Cut(action, ":")
			for _, on := range append(strangers(service), "*") {
				tried++
				if policytest.Allows(policytest.Request{Action: action, Resource: on}, document(rights)) {
					t.Errorf("%s may %s on %s", who, action, on)
				}
			}
		}
	}
	return tried
}
