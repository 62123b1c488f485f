package template_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// database adds a database of RDS to the template.
func database(attributes string) wrong {
	return each(more("  D: {Type: AWS::RDS::DBInstance, "+attributes+"}\n"),
		rights("rds:CreateDBInstance", "rds:DeleteDBInstance"))
}

// role adds a role with a boundary to the template.
func role(boundary string) wrong {
	return each(rights("iam:CreateRole", "iam:DeleteRole"),
		more("  R: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}, PermissionsBoundary: "+boundary+"}}\n"))
}

func proof(members object) wrong { return setting("proof", members) }

func target(operation string) object {
	return object{"service": "sqs", "headers": object{"X-Amz-Target": "AmazonSQS." + operation}, "body": "{}"}
}

// denied denies to send to a resource.
func denied(resource string) wrong {
	return with("policy.json", `"Statement": [`,
		`"Statement": [{"Effect": "Deny", "Action": "sqs:Send*", "Resource": "`+resource+`"}, `)
}

// shared is a right to have a function of the operator's make custom resources.
func shared(resource string) wrong {
	return each(with("permissions.json",
		"\n  \"Resource\": \"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*\"}]}",
		` "Resource": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"},`+
			`{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": "`+resource+`"}]}`),
		more("  C: {Type: Custom::X, Properties: {ServiceTimeout: 60, ServiceToken: \"arn:aws:lambda:x:y:function:maker\"}}\n"))
}

const (
	boundaryOf = `!Sub ["arn:aws:iam::${AWS::AccountId}:policy/longshore/${S}-fixed/longshore-${S}-p-NAME-${AWS::Region}", {S: x}]`
	forbids    = "proof is a call that the plan's policy does not allow, "
	function   = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:"
)

// Each plan is refused, or taken where it wants nothing.
func TestWhatAnOrderWouldMeet(t *testing.T) {
	for _, c := range []struct {
		reason string
		do     wrong
		want   string
	}{
		{"CloudFormation takes True for true", each(yaml("    Default: 4\n",
			"    Default: 4\n    NoEcho: 'True'\n"), yaml("!GetAtt Queue.Arn", "!Ref Days"), sources(users, never)),
			"template.yaml:22: output QueueArn shows the secret parameter Days"},
		{"what CloudFormation may read in another way is not guessed",
			yaml("    Default: 4\n", "    Default: 4\n    NoEcho: yes\n"),
			"template.yaml:7: NoEcho of Days is neither true nor false"},
		{"CloudFormation leaves a snapshot of it behind", database("Properties: {StorageEncrypted: true}"),
			"template.yaml:19: D outlives its stack"},
		{"of clusters too", each(more("  D: {Type: AWS::RDS::DBCluster}\n"),
			rights("rds:CreateDBCluster", "rds:DeleteDBCluster")), "template.yaml:19: D outlives its stack"},
		{"a cluster's instance has none", database("Properties: {DBClusterIdentifier: x}"), ""},
		{"it is said", database("DeletionPolicy: Delete"), ""},
		{"two instances would want it", exported("queue"), "template.yaml:20: the export of output QueueUrl has a name"},
		{"each instance has its own", exported("!Sub \"${AWS::StackName}-url\""), ""},
		{"users would choose it", exported("!Ref Fifo"), "template.yaml:20: the export of output QueueUrl has a name"},
		{"it is the offering's", role(strings.Replace(boundaryOf, "NAME", "sqs", 1)), ""},
		{"there is none of that name", role(strings.Replace(boundaryOf, "NAME", "sns", 1)),
			"template.yaml:19: R has a PermissionsBoundary that is not the offering's"},
		{"the name of a long offering is shortened in it", each(role(strings.Replace(boundaryOf, "NAME",
			"queues-of-the-whole-company", 1)), func(_ *testing.T, c *check.Plan) { c.Offering = "queues-of-the-whole-company" }),
			"template.yaml:19: R has a PermissionsBoundary that is not the offering's; write !Sub"},
		{"the policy lacks it", proof(target("GetQueueAttributes")), forbids + "sqs:GetQueueAttributes"},
		{"forms name it too", proof(object{"service": "sqs", "body": "Action=ListQueues&Version=2012-11-05"}),
			forbids + "sqs:ListQueues"},
		{"a listing has another name there", proof(object{"service": "s3", "method": "GET", "path": "/x?list-type=2"}),
			forbids + "s3:ListBucket"},
		{"so has a read", proof(object{"service": "s3", "method": "HEAD", "path": "/x/y"}), forbids + "s3:GetObject"},
		{"a denial goes before", each(proof(target("SendMessage")), denied("*")), forbids + "sqs:SendMessage"},
		{"what is denied on something else is no matter", each(proof(target("SendMessage")), denied("${QueueUrl}")), ""},
		{"it is allowed", proof(target("ReceiveMessage")), ""},
		{"the right to send is one for a batch, too", proof(target("SendMessageBatch")), ""},
		{"what other services call is not told by the path", proof(object{"service": "lambda", "path": "/2015/x"}), ""},
		{"a function of the operator's makes resources of many instances", shared(function + "maker"), ""},
		{"each function of the account is more than that", shared(function + "m*"),
			"permissions.json:3: \"arn:${AWS::Partition}:lambda"},
		{"what silences is said with a reason", setting("warnings", []any{object{"about": "TLS"}}), "warnings.0 does not say"},
		{"and listed", setting("warnings", "TLS"), "warnings is not a list"},
		{"editors on Windows write one", each(with("policy.json", "{", "\ufeff{"), with("permissions.json", "{", "\ufeff{")), ""},
		{"a plan that takes none describes none", setting("parameters", object{"Fifo": object{"value": "false"}}), ""},
	} {
		t.Run(c.reason, func(t *testing.T) { judged(t, changed(t, c.do), c.want) })
	}
}

// exported gives an output of the template an export.
func exported(name string) wrong { return yaml("QueueUrl: {", "QueueUrl: {Export: {Name: "+name+"}, ") }

// A warning that the operator knows is not said again, and its silence goes when the warning has gone.
func TestSilencedWarnings(t *testing.T) {
	all := warned(t, setting("proof", nil))
	got := warned(t, setting("proof", nil), setting("warnings", []any{
		object{"about": "can be used without TLS", "reason": "the queue holds nothing that matters"},
		object{"about": "everybody", "reason": "it was once"},
	}))
	want := []string{`warnings silence "everybody", which is in no warning of this plan: remove it`}
	for _, one := range all {
		if !strings.Contains(one, "TLS") {
			want = append([]string{one}, want...)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(all) != len(want) {
		t.Errorf("of %q -want +got:\n%s", all, diff)
	}
}

// The boundary that a refusal names is the one that an account holds, of a long name too.
func TestNamedBoundary(t *testing.T) {
	scope, place := plan.ScopeOf("Longshore"), plan.Location{Partition: "aws", Account: "123456789012", Region: "eu-west-1"}
	for _, offering := range []string{"sqs", "queues-of-the-whole-company"} {
		checked := changed(t, role("!Ref Days"))
		checked.Offering = offering
		got, err := plan.Fill(regexp.MustCompile(`arn:[^"]*`).FindString(strings.Join(problems(t, checked), "")),
			map[string]string{
				plan.ValuePartition: place.Partition, plan.ValueAccount: place.Account, plan.ValueRegion: place.Region,
				"Scope": strings.TrimPrefix(string(scope), "longshore-"),
			})
		if want := scope.BoundaryARN(place, offering); err != nil || got != want {
			t.Errorf("%s: got  %s (%v)\nwant %s", offering, got, err, want)
		}
	}
}

// The check warns of settings that a careful engineer would not leave, and of none in a template that is right.
func TestCare(t *testing.T) {
	const denied = `  Policy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Queue]
      PolicyDocument:
        Statement: [{Effect: Deny, Principal: "*", Action: "sqs:*", Resource: "*", ` +
		`Condition: {Bool: {"aws:SecureTransport": "false"}}}]
`
	bucket := func(properties string) string {
		return "  B: {Type: AWS::S3::Bucket, Properties: {" + properties + "}}\n" +
			"  P: {Type: AWS::S3::BucketPolicy, Properties: {Bucket: !Ref B, PolicyDocument: {Statement: {Effect: Deny, " +
			"Condition: {Bool: {\"aws:SecureTransport\": false}}}}}}\n"
	}
	noTLS := []string{"13: Queue can be used without TLS"}
	cases := map[string]struct {
		do   wrong
		want []string
	}{
		"Right":         {more(denied), nil},
		"NoTLS":         {nil, noTLS},
		"AllowsInstead": {more(strings.Replace(denied, "Deny", "Allow", 1)), noTLS},
		"PolicyOfOther": {more(strings.Replace(denied, "!Ref Queue", "!Ref Other",
			1) + "  Other: {Type: AWS::SQS::Queue, " + "Properties: {KmsMasterKeyId: alias/aws/sqs}}\n"), noTLS},
		"NotEncrypted": {each(more(denied), yaml("SqsManagedSseEnabled: true", "SqsManagedSseEnabled: false")),
			[]string{"18: Queue has no safe SqsManagedSseEnabled or KmsMasterKeyId"}},
		"ByParameter": {each(more(denied), yaml("SqsManagedSseEnabled: true", "SqsManagedSseEnabled: !Ref Fifo")),
			[]string{"18: Queue has no safe SqsManagedSseEnabled"}},
		"OpenToAll": {more(strings.Replace(denied, "[{Effect: Deny", `[{Effect: Allow, Principal: {AWS: "*"}}, {Effect: Deny`,
			1)), []string{"23: Policy is open to everybody"}},
		"Bucket": {each(more(denied+
			bucket("PublicAccessBlockConfiguration: {BlockPublicAcls: true, BlockPublicPolicy: true, "+
				"IgnorePublicAcls: true}")), rights("s3:CreateBucket", "s3:DeleteBucket", "s3:PutBucketPolicy",
			"s3:DeleteBucketPolicy")),
			[]string{"25: B has no safe BucketEncryption",
				"25: B has no safe PublicAccessBlockConfiguration/RestrictPublicBuckets"}},
		"Internet": {each(more(denied+
			"  G: {Type: AWS::EC2::SecurityGroup, Properties: {SecurityGroupIngress: [{CidrIp: 0.0.0.0/0}]}}\n"),
			rights("ec2:CreateSecurityGroup", "ec2:DeleteSecurityGroup")), []string{"25: G lets in the whole internet"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range warned(t, c.do) {
				if text, ofTemplate := strings.CutPrefix(one, "template.yaml:"); ofTemplate {
					got = append(got, text)
				}
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
