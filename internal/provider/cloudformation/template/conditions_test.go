package template_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/test/expect"
)

// A statement of a policy is refused for what it allows, in whatever words it says so.
func TestStatements(t *testing.T) {
	const all = `"Action":["sqs:SendMessage"],"Resource":"*"`
	on := func(actions, resource, condition string) string {
		return `"Action":[` + actions + `],"Resource":"` + resource + `","Condition":` + condition
	}
	const bus = "arn:aws:events:${AWS::Region}:${AWS::AccountId}:rule/${QueueUrl}/*"
	const near = `"arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"`
	const everything, bound = "allowed on everything", "a Condition on events:TargetArn"
	for _, c := range []struct{ reason, statement, want string }{
		{"tags tell resources apart", all + `,"Condition":{"StringEquals":{"aws:ResourceTag/a":"b"}}`, ""},
		{"the case does not count", all + `,"Condition":{"stringequals":{"AWS:resourcetag/a":["b"]}}`, ""},
		{"what is made is told by its tags", all + `,"Condition":{"StringLike":{"aws:RequestTag/a":"b*"}}`, ""},
		{"says nothing of a resource", all + `,"Condition":{"Bool":{"aws:SecureTransport":"true"}}`, everything},
		{"all but one", all + `,"Condition":{"StringNotEquals":{"aws:ResourceTag/a":"b"}}`, everything},
		{"holds without the tag", all + `,"Condition":{"StringEqualsIfExists":{"aws:ResourceTag/a":"b"}}`, everything},
		{"holds of any value", all + `,"Condition":{"StringLike":{"aws:ResourceTag/a":["b","*"]}}`, everything},
		{"asks for none", all + `,"Condition":{"Null":{"aws:ResourceTag/a":"true"}}`, everything},
		{"asks for nothing", all + `,"Condition":{}`, everything},
		{"holds without the key", on(`"sqs:SendMessage"`, "${QueueArn}", `{"ForAllValues:StringEquals":{"aws:TagKeys":"a"}}`),
			"ForAllValues holds of a call that has no aws:TagKeys"},
		{"asks that it is there",
			on(`"sqs:SendMessage"`, "${QueueArn}",
				`{"ForAllValues:StringEquals":{"aws:TagKeys":"a"},"Null":{"aws:tagkeys":["false"]}}`), ""},

		{"listing knows no resource", `"Action":"SQS:listQueues","Resource":"*"`, ""},
		{"this is of a bucket", `"Action":"S3:ListBucket","Resource":"*"`, everything},
		{"AWS knows no resource of it", `"Action":"sns:unsubscribe","Resource":"*"`, ""},
		{"in capitals", `"Action":"IAM:CreateUser","Resource":"${QueueArn}"`, "more than it is"},
		{"of services", `"Action":"ia?:CreateUser","Resource":"${QueueArn}"`, "allows everything of a service"},
		{"of everybody", `"Action":"sqs:SendMessage","Resource":` + near, "is of all instances"},

		{"anything that trusts EventBridge", `"Action":"events:puttargets","Resource":"` + bus + `"`, bound},
		{"by a pattern", `"Action":"events:Put*","Resource":"` + bus + `"`, bound},
		{"of the broker",
			on(`"events:PutTargets"`, bus,
				`{"ForAllValues:ArnLike":{"events:TargetArn":`+near+`},"Null":{"events:TargetArn":"false"}}`), ""},
		{"of no bound", on(`"events:PutTargets"`, bus, `{"ArnLike":{"events:TargetArn":"arn:aws:sqs:*:*:*"}}`), bound},
		{"half of it", on(`"sns:Subscribe"`, "${QueueArn}", `{"StringEquals":{"sns:Protocol":"sqs"}}`),
			"a Condition on sns:Endpoint"},
		{"one of several", on(`"events:PutTargets"`, bus, `{"ForAnyValue:ArnLike":{"events:TargetArn":`+near+`}}`), bound},
		{"a key has one of several names",
			on(`"kms:Encrypt"`, "*", `{"ForAnyValue:StringLike":{"kms:ResourceAliases":"alias/${Prefix}*"}}`), ""},
		{"all of it", on(`"sns:Subscribe"`, "${QueueArn}",
			`{"StringEquals":{"sns:Protocol":"sqs"},"StringLike":{"sns:Endpoint":`+near+`}}`), ""},
	} {
		checked := changed(t, setting("proof", nil))
		checked.Files.(fstest.MapFS)["policy.json"] = &fstest.MapFile{
			Data: []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` + c.statement + `}]}`)}
		got := strings.Join(problems(t, checked), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q, want %q", c.reason, got, c.want)
		}
	}
}

// The check warns of actions that AWS has no condition for: the author of a policy knows what is in the account.
func TestUnboundedDeputiesAreTold(t *testing.T) {
	checked := changed(t, with("policy.json", `"sqs:SendMessage"`, `"sqs:SendMessage", "SQS:SetQueueAttributes"`))
	told := ""
	checked.Warn = func(w advice.Error) { told += w.Error() }
	settingsOf(t, checked)
	expect.Says(t, "the warnings", told, "sqs:SetQueueAttributes has another service act")
}

// The check finds actions that a service role may do under the broker's prefix alone, however they are written.
func TestGuardedActions(t *testing.T) {
	for _, action := range []string{"IAM:PassRole", "sTs:AssumeRole", "SecretsManager:getSecretValue", "secretsmanager:Get*",
		"ssm:GetParam*", "lambda:Invoke*"} {
		got := problems(t, changed(t, rights(action), with("permissions.json", "${Prefix}*", "payroll")))
		expect.Says(t, action, strings.Join(got, "\n"), "lets the role reach what is not of this broker")
	}
}

// An output does not stand in for what every text may have.
func TestOutputsTakeNoNames(t *testing.T) {
	const url = "  QueueUrl: {Value: !Ref Queue}"
	got := problems(t, changed(t, yaml(url, url+"\n  Prefix: {Value: !Ref Queue}")))
	if len(got) != 1 || !strings.Contains(got[0], "output Prefix has the name") {
		t.Errorf("problems %q", got)
	}
}
