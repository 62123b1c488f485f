package template_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
)

// with replaces text in one of the plan's files.
func with(file, old, text string) func(*testing.T, *check.Plan) {
	return func(t *testing.T, c *check.Plan) {
		files := c.Files.(fstest.MapFS)
		was := string(files[file].Data)
		if !strings.Contains(was, old) {
			t.Fatalf("%s has no %q", file, old)
		}
		files[file] = &fstest.MapFile{Data: []byte(strings.Replace(was, old, text, 1))}
	}
}

// setting replaces a setting of the plan, nil to leave it out.
func setting(name string, v any) func(*testing.T, *check.Plan) {
	return func(_ *testing.T, c *check.Plan) {
		if c.Settings[name] = v; v == nil {
			delete(c.Settings, name)
		}
	}
}

type object = map[string]any

// more adds a resource to the template, on line 20.
func more(text string) func(*testing.T, *check.Plan) {
	return with("template.yaml", "Outputs:\n", text+"Outputs:\n")
}

// A refusal is what is done to a plan that is right, and how the problem begins.
type refusal struct {
	do   []wrong
	want string
}

type wrong = func(*testing.T, *check.Plan)

// user lets users set the template's Fifo.
var user = setting("parameters",
	object{"Days": object{"parameter": "retention_days", "value": "4"}, "Fifo": object{"parameter": "fifo", "value": "false"}})

var ofTemplates = map[string]refusal{
	"NoTemplate": {[]wrong{setting("template", "gone.yaml")}, "gone.yaml: the file cannot be read"},
	"OutsideOfFolder": {[]wrong{setting("template", "../sqs/template.yaml")},
		"../sqs/template.yaml: is no file of the offering's folder"},
	"NotYAML": {[]wrong{with("template.yaml", "Parameters:", "Parameters: {")}, "template.yaml:"},
	"NotJSON": {[]wrong{with("permissions.json", `"Allow",`, `"Allow"`)}, "permissions.json:2: the file is not JSON"},
	"GivenTwice": {[]wrong{with("template.yaml", "      SqsManagedSseEnabled: true", "      FifoQueue: true")},
		`template.yaml:18: "FifoQueue" is given twice`},
	"GivenTwiceInJSON": {[]wrong{with("policy.json", `"Effect": "Allow",`, `"Effect": "Allow", "Effect": "Deny",`)},
		`policy.json:1: "Effect" is given twice`},
	"Control": {[]wrong{with("template.yaml", "Description: A queue", `Description: "A\x01queue"`)},
		"template.yaml:2: the text has a control character"},
	"ControlInSetting": {[]wrong{setting("parameters", object{"Days": object{"value": "4"},
		"Fifo": object{"value": "fal\x01se"}})},
		"parameters.Fifo.value is no value"},
	"Null": {[]wrong{with("template.yaml", "SqsManagedSseEnabled: true", "SqsManagedSseEnabled:")},
		"template.yaml:18: there is no value"},
	"Transform": {[]wrong{with("template.yaml", "Parameters:", "Transform: AWS::Serverless-2016-10-31\nParameters:")},
		"template.yaml:3: Transform is no part"},
	"Rules": {[]wrong{with("template.yaml", "Parameters:", "Rules: {}\nParameters:")}, "template.yaml:3: Rules is no part"},
	"Macro": {[]wrong{with("template.yaml", "!Ref Days", "{\"Fn::Transform\": {Name: X}}")},
		"template.yaml:17: Fn::Transform is no function"},
	"ShortTransform": {[]wrong{with("template.yaml", "!Ref Days", "!Transform {Name: X}")},
		"template.yaml:17: Fn::Transform is no function"},
	"ForEach": {[]wrong{with("template.yaml", "Outputs:", "  Fn::ForEach::Q: {Type: AWS::SQS::Queue}\nOutputs:")},
		"template.yaml:19: Fn::ForEach::Q is no function"},
	"UnknownTag": {[]wrong{with("template.yaml", "!Ref Days", "!Rev Days")}, `template.yaml:17: "!Rev" is no function`},
	"Nested":     {[]wrong{more("  S: {Type: AWS::CloudFormation::Stack}\n")}, "template.yaml:19: S is a nested stack"},
	"MacroResource": {[]wrong{more("  S: {Type: AWS::CloudFormation::Macro}\n")},
		"template.yaml:19: S is of AWS::CloudFormation::Macro"},
	"NoType":      {[]wrong{more("  S: {Properties: {}}\n")}, "template.yaml:19: resource S has no Type"},
	"UnknownType": {[]wrong{with("template.yaml", "SQS::Queue", "SQS::Quene")}, "template.yaml:14: AWS::SQS::Quene is no type"},
	"Outlives": {[]wrong{with("template.yaml", "    Properties:\n", "    DeletionPolicy: Retain\n    Properties:\n")},
		"template.yaml:15: Queue outlives its stack"},
	"UnknownAttribute": {[]wrong{with("template.yaml", "    Properties:\n", "    Propertys: {}\n    Properties:\n")},
		"template.yaml:15: Propertys is no attribute"},
	"PhysicalName": {[]wrong{with("permissions.json", `"sqs:CreateQueue"`,
		`"sqs:CreateQueue", "s3:CreateBucket", "s3:DeleteBucket"`),
		more("  B: {Type: AWS::S3::Bucket, Properties: {BucketName: !Ref AWS::StackName}}\n")},
		"template.yaml:19: B has a name of its own, BucketName"},
	"QueueName": {[]wrong{with("template.yaml", "SqsManaged", "QueueName: mine\n      SqsManaged")},
		"template.yaml:18: QueueName of Queue is not made of the stack's name"},
	"QueueNameAtTimes": {[]wrong{with("template.yaml", "SqsManaged",
		"QueueName: !If [IsFifo, !Sub \"${AWS::StackName}-q.fifo\", mine]\n      SqsManaged")},
		"template.yaml:18: QueueName of Queue is not made of the stack's name"},
	"NameOfUsers": {[]wrong{user,
		more("  B: {Type: AWS::Events::EventBus, Properties: {Name: !Sub \"${AWS::StackName}-${Fifo}\"}}\n")},
		"template.yaml:19: Name of B is not made of the stack's name"},
	"NameOfNothing": {[]wrong{more("  B: {Type: AWS::Events::EventBus, Properties: {Name: bus}}\n")},
		"template.yaml:19: Name of B is not made of the stack's name"},
	"NameOfALog": {[]wrong{more("  L: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: mine}}\n"),
		rights("logs:CreateLogGroup", "logs:DeleteLogGroup")},
		"template.yaml:19: LogGroupName of L is not made of the stack's name"},
	"Custom": {[]wrong{more("  C: {Type: Custom::X, Properties: {ServiceToken: x}}\n")},
		"template.yaml:19: C is a custom resource without a ServiceTimeout"},
	"CustomForLong": {[]wrong{more("  C: {Type: Custom::X, Properties: {ServiceToken: x, ServiceTimeout: 3601}}\n")},
		"template.yaml:19: C is a custom resource without"},
	"Role": {[]wrong{more("  R: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}\n"),
		rights("iam:CreateRole", "iam:DeleteRole")}, "template.yaml:19: R has no PermissionsBoundary"},
	"AccessKey": {[]wrong{more("  K: {Type: AWS::IAM::AccessKey, Properties: {UserName: x}}\n"), rights("iam:CreateAccessKey",
		"iam:DeleteAccessKey")}, "template.yaml:19: K is an access key"},
	"SSMType": {[]wrong{with("template.yaml", "Type: Number", "Type: AWS::SSM::Parameter::Value<String>")},
		"template.yaml:5: parameter Days is read from Systems Manager"},
	"AccountType": {[]wrong{with("template.yaml", "Type: Number", "Type: AWS::EC2::VPC::Id")},
		"template.yaml:5: parameter Days names something of the account"},
	"UntypedParameter": {[]wrong{with("template.yaml", "    Type: Number\n", "")}, "template.yaml:4: parameter Days has no Type"},
	"UnknownRef": {[]wrong{with("template.yaml", "!Ref Days", "!Ref Day")},
		`template.yaml:17: "Day" is nothing that the template has; did you mean "Days"?`},
	"UnknownGetAtt": {[]wrong{with("template.yaml", "Queue.Arn", "Cue.Arn")}, `template.yaml:21: "Cue" is nothing`},
	"UnknownSub": {[]wrong{with("template.yaml", "!Ref Days", `!Sub "${!Not}${Dayz}"`)},
		`template.yaml:17: "Dayz" is nothing`},
	"UnknownCondition": {[]wrong{with("template.yaml", "!If [IsFifo", "!If [IsFiFo")}, `template.yaml:16: "IsFiFo" is nothing`},
	"ConditionOfNothing": {[]wrong{with("template.yaml", "    Properties:\n", "    Condition: Never\n    Properties:\n")},
		`template.yaml:15: "Never" is nothing`},
	"ResolvedByUser": {[]wrong{with("template.yaml", "!Ref Days", `!Sub "{{resolve:ssm:${Days}}}"`)},
		"template.yaml:17: a dynamic reference is put together"},
	"ResolvedJoined": {[]wrong{with("template.yaml", "!Ref Days", `!Join ["", ["{{resolve:", "ssm:x}}"]]`)},
		"template.yaml:17: a dynamic reference is put together"},
	"OpensBeforeUser": {[]wrong{with("template.yaml", "!Ref Days", `!Sub "{{${Days}"`)},
		"template.yaml:17: what a user gives stands behind an opening brace"},
	"ResolvedOutput": {[]wrong{with("template.yaml", "!Ref Queue}", `"{{resolve:ssm:x}}"}`)},
		"template.yaml:20: an output holds a secret"},
	"Split": {[]wrong{with("template.yaml", "!Ref Days", `!Join ["", !Split ["x", !Ref Days]]`)},
		"template.yaml:17: what a user gives is split"},
	"SplitAlone": {[]wrong{with("template.yaml", "!Ref Days", `!Select [0, !Split ["x", !Sub "-${Days}"]]`)},
		"template.yaml:17: what a user gives is split"},
	"HalfReference": {[]wrong{with("template.yaml", "!Ref Days", `"{{resolve:ssm"`)},
		"template.yaml:17: a dynamic reference is not written out"},
	"ResolvedDefault": {[]wrong{with("template.yaml", "Default: 4", `Default: "{{resolve:ssm:x}}"`)},
		"template.yaml:6: a default is a dynamic reference"},
	"ResolvedValue": {[]wrong{setting("parameters", object{"Days": object{"value": "{{resolve:ssm:x}}"},
		"Fifo": object{"value": "false"}})}, "parameters.Days.value is a dynamic reference"},
	"ShownSecret": {[]wrong{with("template.yaml", "    Default: 4\n", "    Default: 4\n    NoEcho: true\n"), with("template.yaml",
		"!GetAtt Queue.Arn", "!Ref Days"), setting("parameters", object{"Days": object{"parameter": "retention_days"},
		"Fifo": object{"value": "false"}})}, "template.yaml:22: output QueueArn shows the secret parameter Days"},
	"EchoedSecret": {[]wrong{setting("parameters", object{"Days": object{"parameter": "password"},
		"Fifo": object{"value": "false"}})},
		"template.yaml:4: parameter Days takes the secret password"},
	"SecretInFile": {[]wrong{with("template.yaml", "    Default: 4\n", "    NoEcho: true\n")},
		"parameters.Days.value is a secret that stands in a file"},
}

var ofPlans = map[string]refusal{
	"NoSource": {[]wrong{setting("parameters", object{"Days": object{"parameter": "retention_days"}})},
		"template.yaml:9: parameter Fifo has neither a default nor a source"},
	"NoParameter": {[]wrong{setting("parameters", object{"Days": object{"parameter": "retention_days"},
		"Fifo": object{"value": "false"}, "Dais": object{"value": 1}})}, "parameters.Dais is no parameter of the template"},
	"NoValue": {[]wrong{setting("parameters", object{"Days": object{"parameter": "retention_days"},
		"Fifo": object{"context": "space"}})}, "parameters.Fifo has no value where none is given"},
	"UnknownContext": {[]wrong{setting("parameters", object{"Days": object{"parameter": "retention_days"},
		"Fifo": object{"context": "user", "value": 1}})}, "parameters.Fifo.context is nothing that platforms tell"},
	"UnknownTarget": {[]wrong{setting("parameters", object{"Days": object{"parameter": "retention_days"},
		"Fifo": object{"target": "role"}})}, "parameters.Fifo.target is nothing that a target has"},
	"UnknownSetting": {[]wrong{setting("on_deletion", "empty")}, "on_deletion is no setting"},
	"UnknownRule":    {[]wrong{setting("on_delete", "drop")}, "on_delete is no rule"},
	"UnknownOutput": {[]wrong{setting("credentials", object{"queue_url": "${QueueURL}"})},
		`credentials.queue_url names "QueueURL", which is no output: did you mean "QueueUrl"?`},
	"OpenPlaceholder": {[]wrong{setting("credentials", object{"queue_url": "${QueueUrl"})},
		"credentials.queue_url has a ${ that is not closed"},
	"KeyOfPrincipal": {[]wrong{setting("credentials", object{"access_key_id": "x"})},
		"credentials.access_key_id is the principal's own"},
	"UnsureOutput": {[]wrong{user, setting("credentials", object{"url": "${QueueUrl}"}),
		with("template.yaml", "QueueUrl: {", "QueueUrl: {Condition: IsFifo, ")},
		`credentials.url names the output "QueueUrl", which not every instance`},
	"OutputInPolicy": {[]wrong{with("policy.json", "QueueArn", "Arn")},
		`policy.json:2: the policy names "Arn", which is no output`},
	"OutputInProof": {[]wrong{setting("proof", object{"service": "sqs", "body": "${Url}"})},
		`proof.body names "Url", which is no output`},
	"TakenTwice": {[]wrong{setting("parameters", object{"Days": object{"parameter": "days"},
		"Fifo": object{"parameter": "days", "value": "false"}})}, "parameters.Fifo.parameter is the one that Days takes"},
	"LongText": {[]wrong{days("Type: String", "MaxLength: 1025")},
		"template.yaml:4: parameter Days can be longer than 4096 bytes"},
	"EndlessText": {[]wrong{days("Type: String", "MinLength: 1")}, "template.yaml:4: parameter Days takes a user's text without"},
	"EndlessNumber": {[]wrong{with("template.yaml", "    MaxValue: 14\n", "")},
		"template.yaml:4: parameter Days takes a user's number without bounds"},
	"EndlessList": {[]wrong{days("Type: CommaDelimitedList", "MaxLength: 9")},
		"template.yaml:4: parameter Days takes a user's list without a bound"},
	"LongList": {[]wrong{days("Type: CommaDelimitedList", "MaxLength: 100"), narrowed(object{"maxItems": 100.0})},
		"template.yaml:4: parameter Days can be longer"},
	"BoundIsText": {[]wrong{with("template.yaml", "MaxValue: 14", "MaxValue: many")},
		"template.yaml:4: parameter Days has a MaxValue that is no number"},
	"PatternOfJava": {[]wrong{days("Type: String", "MaxLength: 9\n    AllowedPattern: \"(?i)x\"")},
		"template.yaml:4: parameter Days has an AllowedPattern that not all"},
	"WiderNumber": {[]wrong{narrowed(object{"maximum": 15.0})},
		"parameters.Days.schema.maximum allows what the template's parameter does not"},
	"WiderType": {[]wrong{narrowed(object{"type": "string"})}, "parameters.Days.schema.type allows what"},
	"WiderValues": {[]wrong{days("Type: String", "AllowedValues: [a, b]"), narrowed(object{"enum": []any{"a", "c"}})},
		"parameters.Days.schema.enum allows what"},
	"NoValues": {[]wrong{days("Type: String", `AllowedValues: ["", b]`), narrowed(object{"enum": []any{"b", nil}})},
		"parameters.Days.schema.enum allows what"},
	"OtherPattern": {[]wrong{days("Type: String", "MaxLength: 9\n    AllowedPattern: \"a+\""), narrowed(object{"pattern": "a"})},
		"parameters.Days.schema.pattern allows what"},
	"Wildcard": {[]wrong{with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "sqs:*"`)},
		`permissions.json:2: "sqs:*" allows everything`},
	"Everything": {[]wrong{with("permissions.json", `"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"`,
		`"*"`)}, "permissions.json:4: sqs:CreateQueue is allowed on everything"},
	"OthersSecrets": {[]wrong{with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "ssm:GetParameter"`),
		with("permissions.json", "${Prefix}*", "longshore-*")},
		"permissions.json:4: \"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:longshore-*\" lets the role reach"},
	"UnknownValue": {[]wrong{with("permissions.json", "${Prefix}", "${Prefixes}")}, "permissions.json:4: "},
	"NothingMakes": {[]wrong{more("  B: {Type: AWS::S3::Bucket}\n")},
		"permissions.json:1: nothing allows CloudFormation to make and remove AWS::S3::Bucket"},
	"NotAction": {[]wrong{with("policy.json", `"Action"`, `"NotAction": "sqs:DeleteQueue", "Action"`)},
		"policy.json:2: NotAction is nothing that a statement here may have"},
	"PolicyVersion":  {[]wrong{with("policy.json", "2012-10-17", "2008-10-17")}, "policy.json:1: the policy has not the version"},
	"PolicyWildcard": {[]wrong{with("policy.json", `"sqs:SendMessage"`, `"*"`)}, `policy.json:2: "*" allows everything`},
	"PolicyEverything": {[]wrong{with("policy.json", `"${QueueArn}"`, `"*"`)},
		"policy.json:2: sqs:SendMessage is allowed on everything"},
	"PolicyOfAll": {[]wrong{with("policy.json", `"${QueueArn}"`, `"arn:${AWS::Partition}:sqs:*:*:*"`)},
		"policy.json:2: sqs:SendMessage is allowed on everything"},
	"PolicyOfKind": {[]wrong{with("policy.json", `"${QueueArn}"`, `"arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/*"`)},
		"policy.json:2: sqs:SendMessage is allowed on everything"},
	"PolicyOfIAM": {[]wrong{with("policy.json", `"sqs:SendMessage"`, `"iam:CreateUser"`)},
		`policy.json:2: "iam:CreateUser" would let a binding make itself more`},
	"Locked": {[]wrong{func(_ *testing.T, c *check.Plan) {
		c.Lock = func(string) error { return advice.For("/maintenance_info", "is locked", "raise the version") }
	}}, "/maintenance_info is locked"},
	"Outlasting": {[]wrong{setting("minutes", json.Number("30")), func(_ *testing.T,
		c *check.Plan) {
		c.Deadline = 30 * time.Minute
	}}, "minutes has to be less than the 30"},
	"Usual": {[]wrong{func(_ *testing.T, c *check.Plan) { c.Deadline = 50 * time.Minute }},
		"minutes has to be less than the 50"},
	"CannotLook": {[]wrong{setting("on_delete", "refuse"), with("template.yaml", "SQS::Queue", "SNS::Topic"),
		rights("sns:CreateTopic", "sns:DeleteTopic")}, "on_delete has to say"},
	"Weeks":          {[]wrong{setting("minutes", json.Number("10081"))}, "minutes is not a time"},
	"RoleOfNobody":   {[]wrong{setting("principal", "role")}, "principal is a role that nobody may assume"},
	"AssumedByAll":   {[]wrong{setting("principal", "role"), setting("assume", []any{"*"})}, "assume.0 names nobody"},
	"AssumedUser":    {[]wrong{setting("assume", []any{"123456789012"})}, "assume means nothing for a user"},
	"Group":          {[]wrong{setting("principal", "group")}, "principal is nothing that a binding can get"},
	"ProofOfNothing": {[]wrong{setting("proof", object{"service": "S3"})}, "proof.service is not how hosts"},
	"LargeTemplate": {[]wrong{with("template.yaml", "Description: A queue",
		"Description: A queue\nMetadata: {X: \""+strings.Repeat("x", 1_000_000)+"\"}")},
		"template.yaml:1: the template is larger than"},
	"LargeFile": {[]wrong{with("template.yaml", "Description: A queue", "Description: "+strings.Repeat("x", 1<<20))},
		"template.yaml:1: the file is larger than"},
}

// Each plan is refused for what is wrong with it, at its place.
func TestRefusals(t *testing.T) {
	cases := maps.Clone(ofTemplates)
	maps.Copy(cases, ofPlans)
	// These are wrong in several ways.
	several := []string{"NameOfUsers", "NameOfNothing"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checked := queue()
			for _, do := range c.do {
				do(t, &checked)
			}
			got := problems(t, checked)
			if more := slices.Contains(several, name); more != (len(got) > 1) || len(got) == 0 {
				t.Fatalf("problems: %q", got)
			}
			for _, one := range got {
				if strings.HasPrefix(one, c.want) {
					return
				}
			}
			t.Errorf("got  %q\nwant %q", got, c.want)
		})
	}
}

// days gives the parameter of retention_days another type and bound.
func days(kind, bound string) wrong {
	return with("template.yaml", "Type: Number\n    Default: 4\n    MinValue: 1\n    MaxValue: 14",
		kind+"\n    Default: a\n    "+bound)
}

// narrowed gives the parameter of retention_days keywords of the plan's own.
func narrowed(keywords object) wrong {
	return setting("parameters",
		object{"Days": object{"parameter": "retention_days", "schema": keywords}, "Fifo": object{"value": "false"}})
}

// rights adds actions to what CloudFormation may do.
func rights(actions ...string) func(*testing.T, *check.Plan) {
	return with("permissions.json", `"sqs:CreateQueue"`, `"sqs:CreateQueue", "`+strings.Join(actions, `", "`)+`"`)
}

// A warning says where it is about, and what to do.
func TestWarnings(t *testing.T) {
	checked := queue()
	for _, do := range []func(*testing.T, *check.Plan){
		rights("sqs:Get*", "s3:PutObject"), with("permissions.json", `, "sqs:UntagQueue"`, ""), setting("proof", nil),
		with("policy.json", `"${QueueArn}"`, `["${QueueArn}", "arn:aws:sqs:eu-west-1:123456789012:longshore"]`),
	} {
		do(t, &checked)
	}
	var got []string
	checked.Warn = func(w advice.Error) { got = append(got, w.Error()) }
	settingsOf(t, checked)
	for _, want := range []string{
		`permissions.json:2: "sqs:Get*" may allow more than is needed`,
		"permissions.json:1: for AWS::SQS::Queue, CloudFormation may also call sqs:UntagQueue",
		`permissions.json:2: CloudFormation never calls "s3:PutObject"`,
		`policy.json:2: "arn:aws:sqs:eu-west-1:123456789012:longshore" is the same for every instance`,
		" have no proof",
		"template.yaml:13: Queue can be used without TLS",
	} {
		found := false
		for _, one := range got {
			found = found || strings.HasPrefix(one, want)
		}
		if !found {
			t.Errorf("nothing warns: %s", want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d warnings: %q", len(got), got)
	}
}
