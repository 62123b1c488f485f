package template_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
)

// The check warns of settings that a careful engineer would not leave, and of none in a template that is right.
func TestCare(t *testing.T) {
	const denied = `  Policy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Queue]
      PolicyDocument:
        Statement: [{Effect: Deny, Principal: "*", Action: "sqs:*", Resource: "*", Condition: {Bool: {"aws:SecureTransport": "false"}}}]
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
			checked := changed(t, c.do)
			var got []string
			checked.Warn = func(w advice.Error) {
				if w.File == "template.yaml" {
					got = append(got, strings.TrimPrefix(w.Error(), "template.yaml:"))
				}
			}
			settingsOf(t, checked)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
