package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/test/expect"
)

// A grant is one action on one resource.
type grant struct{ action, resource, condition string }

func (g grant) String() string {
	if g.condition != "" {
		return g.action + " on " + g.resource + " if " + g.condition
	}
	return g.action + " on " + g.resource
}

func (g grant) service() string {
	service, _, _ := strings.Cut(g.action, ":")
	return service
}

// list is a value that CloudFormation lets stand alone.
func list(value any) []any {
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}

// grantsOf is all that a role may do.
func grantsOf(t *testing.T, made template, role string) []grant {
	t.Helper()
	var out []grant
	for _, p := range list(made.one(t, "AWS::IAM::Role", role)["Policies"]) {
		for _, s := range list(at(p, "PolicyDocument", "Statement")) {
			members := s.(map[string]any)
			for _, name := range []string{"NotAction", "NotResource", "NotPrincipal"} {
				if members[name] != nil {
					t.Fatalf("role %q has a statement with %s, which this test cannot read", role, name)
				}
			}
			if members["Effect"] != "Allow" {
				t.Fatalf("role %q has a statement that does not allow: %s", role, plain(s))
			}
			var condition []string
			for operator, keys := range asMap(members["Condition"]) {
				for key, value := range asMap(keys) {
					condition = append(condition, fmt.Sprintf("%s %s %s", key, operator, plain(value)))
				}
			}
			slices.Sort(condition)
			for _, action := range list(members["Action"]) {
				for _, resource := range list(members["Resource"]) {
					out = append(out, grant{action.(string), plain(resource), strings.Join(condition, " and ")})
				}
			}
		}
	}
	return out
}

func asMap(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}

// The resources that grants are for.
const (
	theTable        = "<StateTable.Arn>"
	theIndex        = "<StateTable.Arn>/index/due"
	theKey          = "<StateKey.Arn>"
	theSecret       = "<SecretsPlatform.Id>"
	theStateMachine = "<WorkflowStateMachine>"
	theProvisioner  = "<ProvisionerFunction.Arn>"

	// The vault has encryption contexts of its own, and the password is read by way of Secrets Manager.
	asVault = "kms:EncryptionContextKeys ForAllValues:StringEquals platform instance binding member" +
		" and kms:EncryptionContextKeys Null false"
	throughSecret = "kms:EncryptionContext:SecretARN StringEquals " + theSecret +
		" and kms:ViaService StringEquals secretsmanager.<AWS::Region>.<AWS::URLSuffix>"
	throughTable = "kms:ViaService StringEquals dynamodb.<AWS::Region>.<AWS::URLSuffix>"
)

// records is what reading and committing needs, of the table and of its key.
var records = append(granted(theTable, "", "dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:PutItem"),
	granted(theKey, throughTable, "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
		"kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo")...)

// granted are grants of actions on one resource, as text.
func granted(on, condition string, actions ...string) (all []string) {
	for _, action := range actions {
		all = append(all, grant{action, on, condition}.String())
	}
	return all
}

// traces reports whether it is for that: all else is for what it names.
func (g grant) traces() bool {
	return g.resource == "*" && slices.Contains([]string{"xray:PutTelemetryRecords", "xray:PutTraceSegments",
		"xray:GetSamplingRules", "xray:GetSamplingTargets"}, g.action)
}

func TestRolesMayDoOnlyThis(t *testing.T) {
	logs := func(function string) []string {
		return granted("<"+function+"Log.Arn>", "", "logs:CreateLogStream", "logs:PutLogEvents")
	}
	seals := granted(theKey, asVault, "kms:Decrypt", "kms:GenerateDataKey")
	starts := granted(theStateMachine, "", "states:StartExecution")
	tests := map[string]struct {
		reason string
		want   []string
	}{
		"ApiFunctionRole": {"it records what is asked for, in place of what was kept, seals it, has it driven, lists what is due",
			slices.Concat(records, logs("ApiFunction"), seals, starts,
				granted(theSecret, "", "secretsmanager:GetSecretValue"), granted(theKey, throughSecret, "kms:Decrypt"),
				granted(theProvisioner, "", "lambda:InvokeFunction"), granted(theIndex, "", "dynamodb:Query"),
				granted(theTable, "", "dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:DeleteItem"))},
		"ProvisionerFunctionRole": {"it makes and removes things, and records that", slices.Concat(records,
			logs("ProvisionerFunction"), seals, granted(theTable, "", "dynamodb:Query", "dynamodb:DeleteItem"))},
		"ReaperFunctionRole": {"it looks for what is due and has it driven, and sees what exists",
			slices.Concat(records, logs("ReaperFunction"), starts, granted(theIndex, "", "dynamodb:Query"),
				granted(theTable, "", "dynamodb:BatchGetItem", "dynamodb:DeleteItem"),
				granted(theTable, "dynamodb:LeadingKeys ForAllValues:StringEquals "+ledger.ReaperPartition+
					" and dynamodb:LeadingKeys Null false", "dynamodb:Query"),
				granted("<DeadLettersQueue.Arn>", "", "sqs:SendMessage"))},
		"WorkflowRole": {"it calls the provisioner, and no more", []string{"lambda:InvokeFunction on " + theProvisioner}},
	}
	for name, variant := range variants {
		made := must(t, variant)
		if roles := made.of("AWS::IAM::Role"); len(roles) != len(tests) {
			t.Errorf("%s: roles %q, want %d", name, roles, len(tests))
		}
		for role, test := range tests {
			var got []string
			for _, g := range grantsOf(t, made, role) {
				if name != "Chosen" || !g.traces() { // tracing is chosen
					got = append(got, g.String())
				}
			}
			slices.Sort(got)
			expect.Same(t, name+" "+role+": "+test.reason, slices.Sorted(slices.Values(test.want)), got)
		}
	}
}

// The table above says what roles may do. This says what none may ever do, whatever is added to it.
func TestRolesMayNeverDoThis(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		never  func(g grant) bool
	}{
		"AnyAction": {"what an action is must be said", func(g grant) bool { return strings.ContainsAny(g.action, "*?") }},
		"Wildcards": {"what it is done to must be said, and all names are known", func(g grant) bool {
			return !g.traces() && strings.ContainsAny(g.resource, "*?")
		}},
		"IAM": {"nobody makes principals", func(g grant) bool { return g.service() == "iam" || g.service() == "sts" }},
		"KeyOwnership": {"who may use the key is not theirs to say", func(g grant) bool {
			return g.service() == "kms" && (strings.Contains(g.action, "Grant") || strings.Contains(g.action, "Policy") ||
				strings.Contains(g.action, "Delet"))
		}},
		"KeyForAnything": {"the key is used for what is known to be ours, by nobody else's names", func(g grant) bool {
			return g.service() == "kms" && g.condition == ""
		}},
		"WholeTable": {"nobody reads or changes the table as a whole", func(g grant) bool {
			return g.action == "dynamodb:Scan" || strings.HasSuffix(g.action, "Table") ||
				strings.HasPrefix(g.action, "dynamodb:Partiql")
		}},
	} {
		for variant, make := range variants {
			made := must(t, make)
			for _, role := range made.of("AWS::IAM::Role") {
				for _, g := range grantsOf(t, made, role) {
					if tc.never(g) {
						t.Errorf("%s, %s: %s: role %q may do %s", name, variant, tc.reason, role, g)
					}
				}
			}
		}
	}
}

func TestTheVaultsNamesAreThese(t *testing.T) {
	if names := strings.Join(kms.ContextKeys, " "); !strings.Contains(asVault, " "+names+" and ") {
		t.Errorf("the vault seals under %q", names)
	}
}

// A role has all its rights in itself: no policy is attached beside it.
func TestRolesHaveNothingBeside(t *testing.T) {
	made := must(t, usual)
	for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::RolePolicy", "AWS::IAM::ManagedPolicy", "AWS::IAM::User",
		"AWS::IAM::Group", "AWS::ApiGateway::Account"} {
		if ids := made.of(kind); len(ids) > 0 {
			t.Errorf("there are resources of type %q: %q", kind, ids)
		}
	}
	for id, p := range made.all("AWS::IAM::Role") {
		expect.Same(t, "role "+id+" is said by", []string{"AssumeRolePolicyDocument", "Description", "Policies"},
			slices.Sorted(maps.Keys(p)))
	}
}

// Whose role it is, and who may call which function.
func TestWhoMayAct(t *testing.T) {
	made := must(t, usual)
	trust := map[string]string{}
	for id, p := range made.all("AWS::IAM::Role") {
		for _, s := range list(at(p, "AssumeRolePolicyDocument", "Statement")) {
			trust[unhashed(id)] += strings.TrimSpace(fmt.Sprintf("%v %v %s", at(s, "Action"), plain(at(s, "Principal")),
				plain(at(s, "Condition", "StringEquals", "aws:SourceAccount"))))
		}
	}
	lambda := `sts:AssumeRole {"Service":"lambda.amazonaws.com"}`
	expect.Same(t, "who takes which role", map[string]string{
		"ApiFunctionRole": lambda, "ProvisionerFunctionRole": lambda, "ReaperFunctionRole": lambda,
		// Otherwise a state machine of another account could be given it.
		"WorkflowRole": `sts:AssumeRole {"Service":"states.amazonaws.com"} <AWS::AccountId>`,
	}, trust)

	var calls []string
	for id, p := range made.all("AWS::Lambda::Permission") {
		calls = append(calls, plain(p["FunctionName"])+" by "+plain(p["Principal"])+" of "+plain(p["SourceArn"]))
		expect.Same(t, fmt.Sprintf("permission %q is for", id), "lambda:InvokeFunction", p["Action"])
	}
	slices.Sort(calls)
	gateway := "<ApiFunction.Arn> by apigateway.amazonaws.com of " +
		"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<APIREST>/<APIRESTDeploymentStageprod>/*/"
	// The provisioner is called by who has the right in its own role.
	expect.Same(t, "who calls which function",
		[]string{gateway, gateway + "*", "<ReaperFunction.Arn> by events.amazonaws.com of <ScheduleRule.Arn>"}, calls)
}
