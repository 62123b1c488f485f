package template_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/test/expect"
)

type object = map[string]any

// A wrong is done to a plan that is right.
type wrong = func(*testing.T, *check.Plan)

// changed is the plan to which that was done.
func changed(t *testing.T, do ...wrong) check.Plan {
	t.Helper()
	checked := queue()
	each(do...)(t, &checked)
	return checked
}

// each does several things; nil does nothing.
func each(all ...wrong) wrong {
	return func(t *testing.T, c *check.Plan) {
		for _, do := range all {
			if do != nil {
				do(t, c)
			}
		}
	}
}

// with replaces text in one of the plan's files, and yaml in its template.
func with(file, old, text string) wrong {
	return func(t *testing.T, c *check.Plan) {
		was := string(c.Files.(fstest.MapFS)[file].Data)
		if !strings.Contains(was, old) {
			t.Fatalf("%s has no %q", file, old)
		}
		holding(file, strings.Replace(was, old, text, 1))(t, c)
	}
}

// holding gives a file of the plan a text.
func holding(file, text string) wrong {
	return func(_ *testing.T, c *check.Plan) { c.Files.(fstest.MapFS)[file] = &fstest.MapFile{Data: []byte(text)} }
}

func yaml(old, text string) wrong { return with("template.yaml", old, text) }

// setting replaces a setting of the plan, nil to leave it out.
func setting(name string, v any) wrong {
	return func(_ *testing.T, c *check.Plan) {
		if c.Settings[name] = v; v == nil {
			delete(c.Settings, name)
		}
	}
}

// sources are those of the template's two parameters. In a plan that is right, users set Days, and Fifo is false.
func sources(days, fifo object) wrong {
	return setting("parameters", object{"Days": days, "Fifo": fifo})
}

var (
	users, never = object{"parameter": "retention_days"}, object{"value": "false"}
	// user lets users set Fifo.
	user = sources(object{"parameter": "retention_days", "value": "4"}, object{"parameter": "fifo", "value": "false"})
)

// more adds a resource to the template, on line 20.
func more(text string) wrong { return yaml("Outputs:\n", text+"Outputs:\n") }

// A refusal is what is done to a plan that is right, and how the problem begins.
type refusal struct {
	do   wrong
	want string
}

var ofTemplates = []refusal{
	{setting("template", "gone.yaml"), "gone.yaml: the file cannot be read"},
	{setting("template", "../sqs/template.yaml"), "../sqs/template.yaml: is no file of the offering's folder"},
	{yaml("Parameters:", "Parameters: {"), "template.yaml:"},
	{with("permissions.json", `"Allow",`, `"Allow"`), "permissions.json:2: the file is not JSON"},
	{yaml("      SqsManagedSseEnabled: true", "      FifoQueue: true"), `template.yaml:18: "FifoQueue" is given twice`},
	{with("policy.json", `"Effect": "Allow",`, `"Effect": "Allow", "Effect": "Deny",`), `policy.json:1: "Effect" is given twice`},
	{with("permissions.json", `"sqs:UntagQueue"`, `null`), "permissions.json:3: null is no value in such a file"},
	{holding("permissions.json", strings.Repeat("[", 61)+"\n[]"+strings.Repeat("]", 61)),
		"permissions.json:2: the file nests more than 60 values"},
	{yaml("Parameters:", "Metadata: &m {again: *m}\nParameters:"), "template.yaml:3: the file nests more than 60 values"},
	{yaml("Parameters:", "Metadata:\n  a: &a ["+strings.Repeat("x,", 99)+"]\n  b: &b ["+strings.Repeat("*a,", 99)+"]\n  c: ["+
		strings.Repeat("*b,", 99)+"]\nParameters:"), "template.yaml:4: the file expands to more than 100000 values"},
	{yaml("Description: A queue", `Description: "A\x01queue"`), "template.yaml:2: the text has a control character"},
	{sources(object{"value": "4"}, object{"value": "fal\x01se"}), "parameters.Fifo.value is no value"},
	{yaml("SqsManagedSseEnabled: true", "SqsManagedSseEnabled:"), "template.yaml:18: there is no value"},
	{yaml("Parameters:", "Transform: AWS::Serverless-2016-10-31\nParameters:"), "template.yaml:3: Transform is not allowed in"},
	{yaml("Parameters:", "Rules: {}\nParameters:"), "template.yaml:3: Rules is not allowed in"},
	{yaml("!Ref Days", "{\"Fn::Transform\": {Name: X}}"), "template.yaml:17: Fn::Transform is no function"},
	{yaml("!Ref Days", "!Transform {Name: X}"), "template.yaml:17: Fn::Transform is no function"},
	{yaml("Outputs:", "  Fn::ForEach::Q: {Type: AWS::SQS::Queue}\nOutputs:"), "template.yaml:19: Fn::ForEach::Q is no function"},
	{yaml("!Ref Days", "!Rev Days"), `template.yaml:17: "!Rev" is no function`},
	{more("  S: {Type: AWS::CloudFormation::Stack}\n"), "template.yaml:19: S is a nested stack"},
	{more("  S: {Type: AWS::CloudFormation::Macro}\n"), "template.yaml:19: S is of AWS::CloudFormation::Macro"},
	{more("  S: {Properties: {}}\n"), "template.yaml:19: resource S has no Type"},
	{yaml("SQS::Queue", "SQS::Quene"), "template.yaml:14: AWS::SQS::Quene is not a known type"},
	{yaml("    Properties:\n", "    DeletionPolicy: Retain\n    Properties:\n"), "template.yaml:15: Queue outlives its stack"},
	{yaml("    Properties:\n", "    Propertys: {}\n    Properties:\n"), "template.yaml:15: Propertys is no attribute"},
	{each(with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "s3:CreateBucket", "s3:DeleteBucket"`),
		more("  B: {Type: AWS::S3::Bucket, Properties: {BucketName: !Ref AWS::StackName}}\n")),
		"template.yaml:19: B has a name of its own, BucketName"},
	{yaml("SqsManaged", "QueueName: mine\n      SqsManaged"),
		"template.yaml:18: QueueName of Queue does not contain the stack's name"},
	{yaml("SqsManaged", "QueueName: !If [IsFifo, !Sub \"${AWS::StackName}-q.fifo\", mine]\n      SqsManaged"),
		"template.yaml:18: QueueName of Queue does not contain the stack's name"},
	{each(user, more("  B: {Type: AWS::Events::EventBus, Properties: {Name: !Sub \"${AWS::StackName}-${Fifo}\"}}\n")),
		"template.yaml:19: Name of B does not contain the stack's name …"},
	{more("  B: {Type: AWS::Events::EventBus, Properties: {Name: bus}}\n"),
		"template.yaml:19: Name of B does not contain the stack's name …"},
	{each(more("  L: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: mine}}\n"),
		rights("logs:CreateLogGroup", "logs:DeleteLogGroup")),
		"template.yaml:19: LogGroupName of L does not contain the stack's name"},
	{more("  C: {Type: Custom::X, Properties: {ServiceToken: x}}\n"),
		"template.yaml:19: C is a custom resource without a ServiceTimeout"},
	{more("  C: {Type: Custom::X, Properties: {ServiceToken: x, ServiceTimeout: 3601}}\n"),
		"template.yaml:19: C is a custom resource without"},
	{each(more("  R: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}\n"),
		rights("iam:CreateRole", "iam:DeleteRole")), "template.yaml:19: R has no PermissionsBoundary"},
	{each(more("  K: {Type: AWS::IAM::AccessKey, Properties: {UserName: x}}\n"), rights("iam:CreateAccessKey",
		"iam:DeleteAccessKey")), "template.yaml:19: K is an access key"},
	{yaml("Type: Number", "Type: AWS::SSM::Parameter::Value<String>"),
		"template.yaml:5: parameter Days is read from Systems Manager"},
	{yaml("Type: Number", "Type: AWS::EC2::VPC::Id"), "template.yaml:5: parameter Days names something in the account"},
	{yaml("    Type: Number\n", ""), "template.yaml:4: parameter Days has no Type"},
	{yaml("!Ref Days", "!Ref Day"), `template.yaml:17: "Day" is not in the template; did you mean "Days"?`},
	{yaml("Queue.Arn", "Cue.Arn"), `template.yaml:21: "Cue" is not in the template`},
	{yaml("!Ref Days", `!Sub "${!Not}${Dayz}"`), `template.yaml:17: "Dayz" is not in the template`},
	{yaml("!If [IsFifo", "!If [IsFiFo"), `template.yaml:16: "IsFiFo" is not in the template`},
	{yaml("    Properties:\n", "    Condition: Never\n    Properties:\n"), `template.yaml:15: "Never" is not in the template`},
	{yaml("!Ref Days", `!Sub "{{resolve:ssm:${Days}}}"`), "template.yaml:17: a dynamic reference is put together"},
	{yaml("!Ref Days", `!Join ["", ["{{resolve:", "ssm:x}}"]]`), "template.yaml:17: a dynamic reference is put together"},
	{yaml("!Ref Days", `!Sub "{{${Days}"`), "template.yaml:17: a user's value stands behind an opening brace"},
	{yaml("!Ref Queue}", `"{{resolve:ssm:x}}"}`), "template.yaml:20: an output holds a secret"},
	{yaml("!Ref Days", `!Join ["", !Split ["x", !Ref Days]]`), "template.yaml:17: a user's value is split"},
	{yaml("!Ref Days", `!Select [0, !Split ["x", !Sub "-${Days}"]]`), "template.yaml:17: a user's value is split"},
	{yaml("!Ref Days", `"{{resolve:ssm"`), "template.yaml:17: a dynamic reference is not written out"},
	{yaml("Default: 4", `Default: "{{resolve:ssm:x}}"`), "template.yaml:6: a default is a dynamic reference"},
	{sources(object{"value": "{{resolve:ssm:x}}"}, never), "parameters.Days.value is a dynamic reference"},
	{each(yaml("    Default: 4\n", "    Default: 4\n    NoEcho: true\n"), yaml("!GetAtt Queue.Arn", "!Ref Days"),
		sources(users, never)), "template.yaml:22: output QueueArn shows the secret parameter Days"},
	{yaml("  QueueUrl: {", "  Prefix: {Value: !Ref Queue}\n  QueueUrl: {"), "template.yaml:20: output Prefix has the name"},
	{sources(object{"parameter": "password"}, never), "template.yaml:4: parameter Days takes the secret password"},
	{yaml("    Default: 4\n", "    NoEcho: true\n"), "parameters.Days.value is a secret written into a file"},
}

var ofPlans = []refusal{
	{setting("parameters", object{"Days": users}), "template.yaml:9: parameter Fifo has neither a default nor a source"},
	{setting("parameters", object{"Days": users, "Fifo": never, "Dais": object{"value": 1}}),
		"parameters.Dais is no parameter of the template"},
	{sources(users, object{"context": "space"}), "parameters.Fifo has no value where none is given"},
	{sources(users, object{"context": "user", "value": 1}), "parameters.Fifo.context is nothing that platforms send"},
	{sources(users, object{"target": "role"}), "parameters.Fifo.target is no property of a target"},
	{setting("on_deletion", "empty"), "on_deletion is no setting"},
	{setting("on_delete", "drop"), "on_delete is no rule"},
	{setting("credentials", object{"queue_url": "${QueueURL}"}),
		`credentials.queue_url names "QueueURL", which is no output: did you mean "QueueUrl"?`},
	{setting("credentials", object{"queue_url": "${QueueUrl"}), "credentials.queue_url has a ${ that is not closed"},
	{setting("credentials", object{"access_key_id": "x"}), "credentials.access_key_id is the principal's own"},
	{each(user, setting("credentials", object{"url": "${QueueUrl}"}), yaml("QueueUrl: {", "QueueUrl: {Condition: IsFifo, ")),
		`credentials.url names the output "QueueUrl", which not every instance`},
	{with("policy.json", "QueueArn", "Arn"), `policy.json:2: the policy names "Arn", which is no output`},
	{setting("proof", object{"service": "sqs", "body": "${Url}"}), `proof.body names "Url", which is no output`},
	{sources(object{"parameter": "days"}, object{"parameter": "days", "value": "false"}),
		"parameters.Fifo.parameter is the one that Days takes"},
	{days("Type: String", "MaxLength: 1025"), "template.yaml:4: parameter Days can be longer than 4096 bytes"},
	{days("Type: String", "MinLength: 1"), "template.yaml:4: parameter Days takes a user's text without"},
	{yaml("    MaxValue: 14\n", ""), "template.yaml:4: parameter Days takes a user's number without bounds"},
	{days("Type: CommaDelimitedList", "MaxLength: 9"), "template.yaml:4: parameter Days takes a user's list without a bound"},
	{each(days("Type: CommaDelimitedList", "MaxLength: 100"), narrowed(object{"maxItems": 100.0})),
		"template.yaml:4: parameter Days can be longer"},
	{yaml("MaxValue: 14", "MaxValue: many"), "template.yaml:4: parameter Days has a MaxValue that is no number"},
	{days("Type: String", "MaxLength: 9\n    AllowedPattern: \"(?i)x\""),
		"template.yaml:4: parameter Days has an AllowedPattern that regular expression engines"},
	{narrowed(object{"maximum": 15.0}), "parameters.Days.schema.maximum allows values that the template's parameter does not"},
	{narrowed(object{"type": "string"}), "parameters.Days.schema.type allows values"},
	{each(days("Type: String", "AllowedValues: [a, b]"), narrowed(object{"enum": []any{"a", "c"}})),
		"parameters.Days.schema.enum allows values"},
	{each(days("Type: String", `AllowedValues: ["", b]`), narrowed(object{"enum": []any{"b", nil}})),
		"parameters.Days.schema.enum allows values"},
	{each(days("Type: String", "MaxLength: 9\n    AllowedPattern: \"a+\""), narrowed(object{"pattern": "a"})),
		"parameters.Days.schema.pattern allows values"},
	{with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "sqs:*"`),
		`permissions.json:2: "sqs:*" allows everything`},
	{with("permissions.json", `"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"`,
		`"*"`), "permissions.json:4: sqs:CreateQueue is allowed on everything"},
	{each(with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "ssm:GetParameter"`),
		with("permissions.json", "${Prefix}*", "longshore-*")),
		"permissions.json:4: \"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:longshore-*\" lets the role reach"},
	{with("permissions.json", "${Prefix}", "${Prefixes}"), "permissions.json:4: "},
	{more("  B: {Type: AWS::S3::Bucket}\n"),
		"permissions.json:1: nothing allows CloudFormation to make and remove AWS::S3::Bucket"},
	{with("policy.json", `"Action"`, `"NotAction": "sqs:DeleteQueue", "Action"`),
		"policy.json:2: NotAction is not allowed in a statement here"},
	{with("policy.json", "2012-10-17", "2008-10-17"), "policy.json:1: the policy does not have the version"},
	{with("policy.json", `"Effect"`, `"Sid": "Send-Read", "Effect"`), `policy.json:1: "Send-Read" is no Sid that IAM takes`},
	{with("policy.json", `"Effect"`, `"Sid": "Größe", "Effect"`), `policy.json:1: "Größe" is no Sid that IAM takes`},
	{with("permissions.json", `"Effect"`, `"Sid": 1, "Effect"`), `permissions.json:1: "1" is no Sid that IAM takes`},
	{with("policy.json", `[{`, `[{"Sid": "Q1", "Effect": "Deny", "Action": "sqs:TagQueue", "Resource": "*"}, {"Sid": "Q1", `),
		`policy.json:1: the Sid "Q1" is given twice`},
	{with("policy.json", `"sqs:SendMessage"`, `"*"`), `policy.json:2: "*" allows everything`},
	{with("policy.json", `"${QueueArn}"`, `"*"`), "policy.json:2: sqs:SendMessage is allowed on everything"},
	{with("policy.json", `"${QueueArn}"`, `"arn:${AWS::Partition}:sqs:*:*:*"`),
		"policy.json:2: sqs:SendMessage is allowed on everything"},
	{with("policy.json", `"${QueueArn}"`, `"arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/*"`),
		"policy.json:2: sqs:SendMessage is allowed on everything"},
	{with("policy.json", `"sqs:SendMessage"`, `"iam:CreateUser"`),
		`policy.json:2: "iam:CreateUser" would let a binding raise its own rights`},
	{func(_ *testing.T, c *check.Plan) {
		c.Lock = func(string) error { return advice.For("/maintenance_info", "is locked", "raise the version") }
	}, "/maintenance_info is locked"},
	{each(setting("minutes", json.Number("30")), deadline(30)), "minutes has to be less than the 30"},
	{deadline(50), "minutes has to be less than the 50"},
	{each(setting("on_delete", "refuse"), yaml("SQS::Queue", "SNS::Topic"),
		rights("sns:CreateTopic", "sns:DeleteTopic")), "on_delete must say"},
	{setting("minutes", json.Number("10081")), "minutes is not a time"},
	{setting("principal", "role"), "principal is a role that nobody may assume"},
	{each(setting("principal", "role"), setting("assume", []any{"*"})), "assume.0 names nobody"},
	{setting("assume", []any{"123456789012"}), "assume means nothing for a user"},
	{setting("principal", "group"), "principal is nothing that a binding can receive"},
	{setting("proof", object{"service": "S3"}), "proof.service is not how hosts"},
	{yaml("Description: A queue", "Description: A queue\nMetadata: {X: \""+strings.Repeat("x", 1_000_000)+"\"}"),
		"template.yaml:1: the template is larger than"},
	{yaml("Description: A queue", "Description: "+strings.Repeat("x", 1<<20)), "template.yaml:1: the file is larger than"},
}

// warned is what Check warns of in a plan that is right, to which that was done.
func warned(t *testing.T, do ...wrong) (got []string) {
	t.Helper()
	checked := changed(t, do...)
	checked.Warn = func(w advice.Error) { got = append(got, w.Error()) }
	settingsOf(t, checked)
	return got
}

// judged requires that a plan is refused for one thing, or for more where the wanted text ends so: …; or taken if nothing is
// wanted.
func judged(t *testing.T, checked check.Plan, want string) {
	t.Helper()
	got := problems(t, checked)
	want, several := strings.CutSuffix(want, " …")
	if (want == "") != (len(got) == 0) || several != (len(got) > 1) || want != "" &&
		!slices.ContainsFunc(got, func(one string) bool { return strings.HasPrefix(one, want) }) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Each plan is refused for what is wrong with it, at its place.
func TestRefusals(t *testing.T) {
	for _, c := range append(ofTemplates, ofPlans...) {
		t.Run(c.want, func(t *testing.T) { judged(t, changed(t, c.do), c.want) })
	}
}

// All problems of a file's form are told at once.
func TestProblemsOfForm(t *testing.T) {
	got := problems(t, changed(t, yaml("      SqsManagedSseEnabled: true", "      FifoQueue: true"),
		yaml("  QueueArn:", "  QueueUrl:")))
	want := []string{`template.yaml:18: "FifoQueue" is given twice`, `template.yaml:21: "QueueUrl" is given twice`}
	if len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// deadline is how many minutes an operation may take.
func deadline(minutes time.Duration) wrong {
	return func(_ *testing.T, c *check.Plan) { c.Deadline = minutes * time.Minute }
}

// days gives the parameter of retention_days another type and bound.
func days(kind, bound string) wrong {
	return yaml("Type: Number\n    Default: 4\n    MinValue: 1\n    MaxValue: 14", kind+"\n    Default: a\n    "+bound)
}

// narrowed gives the parameter of retention_days keywords of the plan's own.
func narrowed(keywords object) wrong {
	return sources(object{"parameter": "retention_days", "schema": keywords}, never)
}

// rights adds actions to what CloudFormation may do.
func rights(actions ...string) wrong {
	return with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "`+strings.Join(actions, `", "`)+`"`)
}

// A warning says where it is about, and what to do.
func TestWarnings(t *testing.T) {
	got := warned(t, rights("sqs:Get*", "s3:PutObject"), with("permissions.json", `, "sqs:UntagQueue"`, ""),
		setting("proof", nil), with("policy.json", `"sqs:SendMessage"`, `"sqs:SendMessage", "SQS:SetQueueAttributes"`),
		with("policy.json", `"${QueueArn}"`, `["${QueueArn}", "arn:aws:sqs:eu-west-1:123456789012:longshore"]`))
	for _, want := range []string{
		`permissions.json:2: "sqs:Get*" may allow more than is needed`,
		"permissions.json:1: for AWS::SQS::Queue, CloudFormation may also call sqs:UntagQueue",
		`permissions.json:2: CloudFormation never calls "s3:PutObject"`,
		`policy.json:2: "arn:aws:sqs:eu-west-1:123456789012:longshore" is the same for every instance`,
		// AWS has no condition for it: the author of a policy knows what is in the account.
		"policy.json:2: sqs:SetQueueAttributes has another service act",
		" have no proof",
		"template.yaml:13: Queue can be used without TLS",
	} {
		if !slices.ContainsFunc(got, func(one string) bool { return strings.HasPrefix(one, want) }) {
			t.Errorf("nothing warns: %s", want)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d warnings: %q", len(got), got)
	}
}

// A statement of a policy is refused for what it allows, in whatever words it says so.
func TestStatements(t *testing.T) {
	const all = `"Action":["sqs:SendMessage"],"Resource":"*"`
	on := func(actions, resource, condition string) string {
		return `"Action":[` + actions + `],"Resource":"` + resource + `","Condition":` + condition
	}
	const bus = "arn:aws:events:${AWS::Region}:${AWS::AccountId}:rule/${QueueUrl}/*"
	const near = `"arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"`
	const everything, bound = "allowed on everything", "a Condition on events:TargetArn"
	const empty = `{"Sid":"","Effect":"Deny","Action":"sqs:TagQueue","Resource":"*"},`
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
			"ForAllValues holds for a call that has no aws:TagKeys"},
		{"asks that it is there",
			on(`"sqs:SendMessage"`, "${QueueArn}",
				`{"ForAllValues:StringEquals":{"aws:TagKeys":"a"},"Null":{"aws:tagkeys":["false"]}}`), ""},

		{"a Sid has letters and digits, and may be empty", `"Sid":"aZ09","Action":"sqs:ListQueues","Resource":"*"},` +
			empty + empty + `{"Effect":"Deny","Action":"sqs:TagQueue","Resource":"*"`, ""},
		{"listing knows no resource", `"Action":"SQS:listQueues","Resource":"*"`, ""},
		{"this is of a bucket", `"Action":"S3:ListBucket","Resource":"*"`, everything},
		{"AWS knows no resource of it", `"Action":"sns:unsubscribe","Resource":"*"`, ""},
		{"in capitals", `"Action":"IAM:CreateUser","Resource":"${QueueArn}"`, "raise its own rights"},
		{"of services", `"Action":"ia?:CreateUser","Resource":"${QueueArn}"`, "allows everything of a service"},
		{"of everybody", `"Action":"sqs:SendMessage","Resource":` + near, "matches all instances"},

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
		got := strings.Join(problems(t, changed(t, setting("proof", nil), holding("policy.json",
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",`+c.statement+`}]}`))), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q, want %q", c.reason, got, c.want)
		}
	}
}

// The check finds actions that a service role may do under the broker's prefix alone, however they are written.
func TestGuardedActions(t *testing.T) {
	for _, action := range []string{"IAM:PassRole", "sTs:AssumeRole", "SecretsManager:getSecretValue", "secretsmanager:Get*",
		"ssm:GetParam*", "lambda:Invoke*"} {
		got := problems(t, changed(t, rights(action), with("permissions.json", "${Prefix}*", "payroll")))
		expect.Says(t, action, strings.Join(got, "\n"), "lets the role reach things of others")
	}
}
