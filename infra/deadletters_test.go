package main

import (
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// The queue takes dead letters from those alone who may send them.
func TestDeadLetters(t *testing.T) {
	made := must(t, usual)
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
}
