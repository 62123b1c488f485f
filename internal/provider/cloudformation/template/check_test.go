package template_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/internal/test/expect"
)

const queueTemplate = `AWSTemplateFormatVersion: "2010-09-09"
Description: A queue
Parameters:
  Days:
    Type: Number
    Default: 4
    MinValue: 1
    MaxValue: 14
  Fifo: {Type: String, AllowedValues: ["true", "false"]}
Conditions:
  IsFifo: !Equals [!Ref Fifo, "true"]
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      FifoQueue: !If [IsFifo, true, !Ref AWS::NoValue]
      MessageRetentionPeriod: !Ref Days
      SqsManagedSseEnabled: true
Outputs:
  QueueUrl: {Value: !Ref Queue}
  QueueArn: {Value: !GetAtt Queue.Arn}
`

const queuePermissions = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
  "Action": ["sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:ListQueueTags",
    "sqs:GetQueueUrl", "sqs:TagQueue", "sqs:UntagQueue"],
  "Resource": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"}]}`

const queuePolicy = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
  "Action": ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage"], "Resource": "${QueueArn}"}]}`

// queue is a plan that is right, with its files.
func queue() check.Plan {
	return check.Plan{
		Offering: "sqs", Plan: "standard", Bindable: true, Keep: plan.Digest,
		Lock: func(string) error { return nil }, Warn: func(advice.Error) {}, Describe: func(check.Parameters) {},
		Settings: map[string]any{
			"parameters": map[string]any{
				"Days": map[string]any{"parameter": "retention_days", "value": json.Number("4.0")},
				"Fifo": map[string]any{"value": false},
			},
			"credentials": map[string]any{"queue_url": "${QueueUrl}", "queue_arn": "${QueueArn}"},
			"proof":       map[string]any{"service": "sqs", "body": "{}"},
			"on_delete":   "empty",
		},
		Files: fstest.MapFS{
			"template.yaml":    {Data: []byte(queueTemplate)},
			"permissions.json": {Data: []byte(queuePermissions)},
			"policy.json":      {Data: []byte(queuePolicy)},
		},
	}
}

// settingsOf checks a plan that is right.
func settingsOf(t *testing.T, checked check.Plan) plan.Settings {
	t.Helper()
	snapshot := expect.Get(template.Check(checked))(t)
	return expect.Get(plan.Parse(snapshot))(t)
}

func TestSettings(t *testing.T) {
	checked, kept := queue(), map[string]string{}
	checked.Keep = func(content []byte) string {
		kept[plan.Digest(content)] = string(content)
		return plan.Digest(content)
	}
	got := settingsOf(t, checked)
	four, no := "4", "false"
	want := plan.Settings{
		Change: check.Change{Accepts: []string{"retention_days"}, Shape: got.Shape},
		Format: plan.Format, Offering: "sqs", Template: got.Template, Permissions: got.Permissions,
		Resources:   map[string]string{"Queue": "AWS::SQS::Queue"},
		Parameters:  map[string]plan.Source{"Days": {Parameter: "retention_days", Value: &four}, "Fifo": {Value: &no}},
		Credentials: map[string]string{"queue_url": "${QueueUrl}", "queue_arn": "${QueueArn}"},
		Policy:      got.Policy, Principal: plan.User, Proof: &plan.Proof{Service: "sqs", Body: "{}"}, OnDelete: plan.Empty,
	}
	expect.Same(t, "settings", want, got)
	const asJSON = `"FifoQueue":{"Fn::If":["IsFifo",true,{"Ref":"AWS::NoValue"}]},"MessageRetentionPeriod":{"Ref":"Days"}`
	expect.Says(t, "the template that is kept", kept[got.Template], asJSON)
	expect.Says(t, "the permissions that are kept", kept[got.Permissions], `"Version":"2012-10-17"`)

	// A template has the same digest as JSON, and in another order.
	files := checked.Files.(fstest.MapFS)
	delete(files, "template.yaml")
	files["template.json"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(kept[got.Template], ",", ",\n\t"))}
	expect.Same(t, "the digest of the template as JSON", got.Template, settingsOf(t, checked).Template)
}

// problems are what Check says, one a line.
func problems(t *testing.T, checked check.Plan) []string {
	t.Helper()
	_, err := template.Check(checked)
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("an error alone: %v", err)
	}
	var all []string
	for _, one := range joined.Unwrap() {
		var wrong *advice.Error
		if !errors.As(one, &wrong) || wrong.What == "" || wrong.Remedy == "" {
			t.Errorf("without a remedy: %v", one)
		}
		all = append(all, one.Error())
	}
	return all
}

var update = flag.Bool("update", false, "write the golden files anew")

// The snapshot of a plan stays the same from version to version: a later program compares with
// it, and a digest that changed by itself would ask for an upgrade that changes nothing.
func TestGoldenSettings(t *testing.T) {
	const golden = "testdata/settings.json"
	snapshot := expect.Get(template.Check(changed(t, user)))(t)
	var got bytes.Buffer
	expect.OK(t, json.Indent(&got, snapshot, "", "  "))
	got.WriteByte('\n')
	if *update {
		expect.OK(t, os.WriteFile(golden, got.Bytes(), 0o600))
	}
	want := expect.Get(os.ReadFile(golden))(t)
	expect.Same(t, "the snapshot", string(want), got.String())
}
