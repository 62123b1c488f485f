package template_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/internal/test/expect"
)

const scant = `{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*"},
  {"Effect": "Deny", "Action": ["sqs:TagQueue"], "Resource": "arn:aws:sqs:::x"},
  {
    "Effect": "Allow",
    "Action": [
      "sqs:CreateQueue", "sqs:DeleteQueue"
    ],
    "Resource": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*",
    "Condition": {"Bool": {"aws:SecureTransport": "true"}}
  }
]}
`

// Add puts the calls of CloudFormation beside others of their service, and changes nothing else of the file.
func TestPermit(t *testing.T) {
	checked := changed(t, holding("permissions.json", scant),
		more("  S: {Type: AWS::SNS::Topic}\n  T: {Type: AWS::SQS::QueuePolicy}\n"))
	checked.Folder = "mine/sqs"
	all := template.Permits{}
	for range 2 { // plans share the file
		expect.OK(t, all.Add(checked))
	}
	got := all["mine/sqs/permissions.json"]
	want := strings.Replace(scant, `"sqs:CreateQueue", "sqs:DeleteQueue"`, `"sqs:CreateQueue", "sqs:DeleteQueue",
      "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:UntagQueue"`, 1)
	want = strings.Replace(want, `"Action": "sqs:ListQueues"`, `"Action": ["sqs:ListQueues", "sqs:ListQueueTags"]`, 1)
	expect.Same(t, "the permissions", want, string(got.Text))
	if len(got.Added) != 6 || len(got.Left) == 0 || strings.Contains(strings.Join(got.Left, " "), "sqs:") {
		t.Errorf("added %q, left %q", got.Added, got.Left)
	}
}

// Add leaves actions that reach others to the operator, and writes no file that is not JSON.
func TestPermitLeaves(t *testing.T) {
	checked := changed(t, role(strings.Replace(boundaryOf, "NAME", "sqs", 1)), rights("iam:GetUser"))
	all := template.Permits{}
	expect.OK(t, all.Add(checked))
	got := all["permissions.json"]
	if len(got.Added) != 0 || !strings.Contains(strings.Join(got.Left, " "), "iam:TagRole") {
		t.Errorf("added %q, left %q", got.Added, got.Left)
	}

	for range 2 { // plans share the file
		expect.OK(t, all.Add(changed(t, holding("rights.yaml", scant), setting("permissions", "rights.yaml"))))
	}
	if got := all["rights.yaml"]; len(got.Added) != 0 || len(got.Left) != 6 {
		t.Errorf("added %q, left %q", got.Added, got.Left)
	}
	if err := all.Add(existing(object{"exports": object{"Url": "u", "Arn": "a"}})); err != nil || len(all) != 2 {
		t.Errorf("of what exists: %v, %d files", err, len(all))
	}
}
