package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestTheReaperIsCalledEachMinute(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			made := must(t, variant)
			rule := made.one(t, "AWS::Events::Rule", "ScheduleRule")
			if rule["ScheduleExpression"] != "rate(1 minute)" || rule["State"] != "ENABLED" || rule["EventPattern"] != nil {
				t.Errorf("schedule %v, %v, pattern %s", rule["ScheduleExpression"], rule["State"], plain(rule["EventPattern"]))
			}
			targets := list(rule["Targets"])
			if len(targets) != 1 || plain(at(targets[0], "Arn")) != "<ReaperFunction.Arn>" {
				t.Fatalf("targets: %s", plain(targets))
			}
			// The next minute's call finds what this one left: a call that is
			// repeated, or comes late, would only run beside it.
			once := map[string]any{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0}
			if dead := plain(at(targets[0], "DeadLetterConfig", "Arn")); dead != "<DeadLettersQueue.Arn>" {
				t.Errorf("calls that cannot be made are told to %q", dead)
			}
			expect.Same(t, "how the rule repeats a call", any(once), at(targets[0], "RetryPolicy"))
			for _, function := range []string{"Reaper", "Provisioner"} { // which pages ask for facts
				invoke := made.one(t, "AWS::Lambda::EventInvokeConfig", function)
				if d := cmp.Diff(map[string]string{"Function": "<" + function + "Function>", "Qualifier": "$LATEST",
					"Attempts": "0", "Age": "60"},
					map[string]string{
						"Function": plain(invoke["FunctionName"]), "Qualifier": plain(invoke["Qualifier"]),
						"Attempts": plain(invoke["MaximumRetryAttempts"]), "Age": plain(invoke["MaximumEventAgeInSeconds"]),
					}); d != "" {
					t.Errorf("how Lambda repeats a call (-want +got):\n%s", d)
				}
			}
			if limit := app.ReaperTimeout.Minutes(); limit > 1 {
				t.Errorf("a sweep may take %v minutes, longer than until the next", limit)
			}
		})
	}
}
