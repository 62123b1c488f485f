package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/test/expect"
)

// The queue keeps dead letters for two weeks, and takes them from those alone who may send them.
func TestDeadLetters(t *testing.T) {
	made := must(t, usual)
	queue := made.one(t, "AWS::SQS::Queue", "")
	if queue["MessageRetentionPeriod"] != 1209600.0 || queue["SqsManagedSseEnabled"] != true {
		t.Errorf("the queue: %s", plain(queue))
	}
	var senders []string
	for _, s := range list(at(made.one(t, "AWS::SQS::QueuePolicy", ""), "PolicyDocument", "Statement")) {
		switch {
		case at(s, "Effect") == "Deny":
			if plain(at(s, "Condition", "Bool", "aws:SecureTransport")) != "false" {
				t.Errorf("what is refused: %s", plain(s))
			}
		case plain(at(s, "Principal", "Service")) == "events.amazonaws.com":
			senders = append(senders, plain(at(s, "Condition", "ArnEquals", "aws:SourceArn")))
		default:
			t.Errorf("somebody else may write: %s", plain(s))
		}
	}
	if d := cmp.Diff(map[string]bool{"<DeadLettersAbandoned.Arn>": true, "<ScheduleRule.Arn>": true}, setOf(senders)); d != "" {
		t.Errorf("rules that may write (-want +got):\n%s", d)
	}
	rule := made.one(t, "AWS::Events::Rule", "DeadLettersAbandoned")
	want := []string{"aws.states", "Step Functions Execution Status Change", "FAILED TIMED_OUT ABORTED", "<WorkflowStateMachine>"}
	got := []string{
		plain(at(rule, "EventPattern", "source")), plain(at(rule, "EventPattern", "detail-type")),
		plain(at(rule, "EventPattern", "detail", "status")),
		plain(list(at(rule, "EventPattern", "detail", "stateMachineArn"))[0]),
	}
	expect.Same(t, "what is told of", want, got)
}

func setOf(all []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		out[s] = true
	}
	return out
}
