package main

import (
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestTheReaperIsCalledEachMinute(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			made := must(t, variant)
			rule := made.one(t, "AWS::Events::Rule", "ScheduleRule")
			expect.Same(t, "the schedule", []any{"rate(1 minute)", "ENABLED", nil},
				[]any{rule["ScheduleExpression"], rule["State"], rule["EventPattern"]})
			targets := list(rule["Targets"])
			if len(targets) != 1 {
				t.Fatalf("targets: %s", plain(targets))
			}
			target := targets[0]
			// The next minute's call finds what this one left: a call that is repeated, or comes late, would only run beside it.
			expect.Same(t, "whom the rule calls, and how often", []any{"<ReaperFunction.Arn>", "<DeadLettersQueue.Arn>",
				map[string]any{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0}},
				[]any{plain(at(target, "Arn")), plain(at(target, "DeadLetterConfig", "Arn")), at(target, "RetryPolicy")})
			for _, function := range []string{"Reaper", "Provisioner"} { // which pages ask for facts
				invoke := made.one(t, "AWS::Lambda::EventInvokeConfig", function)
				expect.Same(t, "how Lambda repeats a call", []string{"<" + function + "Function>", "$LATEST", "0", "60"},
					[]string{plain(invoke["FunctionName"]), plain(invoke["Qualifier"]), plain(invoke["MaximumRetryAttempts"]),
						plain(invoke["MaximumEventAgeInSeconds"])})
			}
			if limit := app.ReaperTimeout.Minutes(); limit > 1 {
				t.Errorf("a sweep may take %v minutes, longer than until the next", limit)
			}
		})
	}
}
