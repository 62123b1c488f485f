package main

import (
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// The queue keeps dead letters for two weeks, and takes them from those alone who may send them.
func TestDeadLetters(t *testing.T) {
	made := must(t, usual)
	queue := made.one(t, "AWS::SQS::Queue", "")
	if queue["MessageRetentionPeriod"] != 1209600.0 || queue["SqsManagedSseEnabled"] != true {
		t.Errorf("the queue: %s", plain(queue))
	}
	senders := map[string]bool{}
	for _, s := range list(at(made.one(t, "AWS::SQS::QueuePolicy", ""), "PolicyDocument", "Statement")) {
		switch {
		case at(s, "Effect") == "Deny":
			if plain(at(s, "Condition", "Bool", "aws:SecureTransport")) != "false" {
				t.Errorf("what is refused: %s", plain(s))
			}
		case plain(at(s, "Principal", "Service")) == "events.amazonaws.com":
			senders[plain(at(s, "Condition", "ArnEquals", "aws:SourceArn"))] = true
		default:
			t.Errorf("somebody else may write: %s", plain(s))
		}
	}
	expect.Same(t, "rules that may write", map[string]bool{"<DeadLettersAbandoned.Arn>": true, "<ScheduleRule.Arn>": true},
		senders)
	told := made.one(t, "AWS::Events::Rule", "DeadLettersAbandoned")["EventPattern"]
	want := []string{"aws.states", "Step Functions Execution Status Change", "FAILED TIMED_OUT ABORTED", "<WorkflowStateMachine>"}
	expect.Same(t, "what is told of", want, []string{plain(at(told, "source")), plain(at(told, "detail-type")),
		plain(at(told, "detail", "status")), plain(list(at(told, "detail", "stateMachineArn"))[0])})
}
