package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/test/expect"
)

// alarmsOf describes the alarms of a template, by their ids.
func alarmsOf(made template) map[string]map[string]any {
	out := map[string]map[string]any{}
	for id, p := range made.all("AWS::CloudWatch::Alarm") {
		out[strings.TrimPrefix(unhashed(id), "Alarms")] = p
	}
	return out
}

// watched says of each alarm of a template what it watches.
func watched(t *testing.T, made template) map[string]string {
	t.Helper()
	got := map[string]string{}
	for id, p := range alarmsOf(made) {
		expect.Same(t, id+" looks at periods of so many seconds", "300", plain(p["Period"]))
		periods := fmt.Sprint(p["EvaluationPeriods"])
		if some := p["DatapointsToAlarm"]; some != nil {
			periods = fmt.Sprintf("%v of %s", some, periods)
		}
		got[id] = fmt.Sprintf("%s %s of %s%s %v over %v, without data %s",
			plain(p["Namespace"]), plain(p["Statistic"]), plain(p["MetricName"]),
			map[string]string{"GreaterThanOrEqualToThreshold": " >=", "LessThanThreshold": " <"}[plain(p["ComparisonOperator"])],
			p["Threshold"], periods, plain(p["TreatMissingData"]))
		var dimensions []string
		for _, d := range list(p["Dimensions"]) {
			dimensions = append(dimensions, " "+plain(at(d, "Name"))+"="+plain(at(d, "Value")))
		}
		slices.Sort(dimensions)
		got[id] += strings.Join(dimensions, "")
	}
	return got
}

// Every alarm is about what happens, and ends by itself when that has ended: what is about what lies somewhere, such as the
// messages of a queue, rings until somebody clears it away, and says nothing about what comes meanwhile.
func TestAlarms(t *testing.T) {
	want := map[string]string{
		"Failing":      "AWS/ApiGateway Sum of 5XXError >= 5 over 1, without data notBreaching ApiName=Longshore",
		"Stuck":        "Longshore Maximum of PastDue >= 1 over 3, without data notBreaching Stack=Longshore",
		"ReaperHalted": "Longshore Maximum of Halted >= 1 over 1, without data notBreaching Stack=Longshore",
		"NoReaper":     "AWS/Lambda Minimum of Errors >= 1 over 2, without data breaching FunctionName=<ReaperFunction>",
	}
	expect.Same(t, "alarms", want, watched(t, must(t, usual)))
	// An alarm is billed: this one is there where it can ring.
	want["Waiting"] = "Longshore Maximum of Trouble >= 1 over 2 of 6, without data notBreaching Stack=Longshore"
	expect.Same(t, "with a provider on servers", want, watched(t, must(t, hostedStack)))
	expect.Same(t, "the broker's own metrics are in", "Longshore", metrics.Namespace)
}

// Every alarm says where to read on, and there is something to read there.
func TestEveryAlarmIsInTheRunbook(t *testing.T) {
	raw := expect.Get(os.ReadFile("../" + runbook))(t)
	headings := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			headings[strings.ToLower(strings.TrimSpace(title))] = true
		}
	}
	for id, p := range alarmsOf(must(t, hostedStack)) { // which has all of them
		_, anchor, ok := strings.Cut(plain(p["AlarmDescription"]), runbook+"#")
		if !ok || anchor != strings.ToLower(id) || !headings[anchor] {
			t.Errorf("%s says %q, and the runbook has nothing of it", id, plain(p["AlarmDescription"]))
		}
	}
}

// toldOf lists what reaches the topic: alarms, and that an operator is warned of nobody being told.
func toldOf(t *testing.T, context map[string]any) (told []string, topic string, warnings []string) {
	t.Helper()
	stack := expect.Get(build(context))(t)
	made := expect.Get(templateOf(stack))(t)
	for id, p := range alarmsOf(made) {
		if to := plain(p["AlarmActions"]); to != "" && to == plain(p["OKActions"]) {
			told, topic = append(told, id), to
		}
	}
	for id, p := range made.all("AWS::Events::Rule") {
		for _, target := range list(p["Targets"]) {
			if topic != "" && plain(at(target, "Arn")) == topic {
				told = append(told, unhashed(id))
			}
		}
	}
	slices.Sort(told)
	return told, topic, findings(t, stack)
}

func TestAlarmsReachWhoIsChosen(t *testing.T) {
	all := []string{"Failing", "NoReaper", "OperatorsKey", "ReaperHalted", "Stuck"}
	const topic = "arn:aws:sns:eu-central-1:111122223333:operators"
	for name, test := range map[string]struct {
		reason  string
		context map[string]any
		told    []string
		topic   string
		warned  bool
	}{
		"Nobody": {"the deployment says that nobody is told", nil, nil, "", true},
		"Topic":  {"a topic that exists is told", map[string]any{ContextAlarmTopic: topic}, all, topic, false},
		"Email": {"an address is told by a topic of the stack's own", map[string]any{ContextAlarmEmail: "ops@example.com"}, all,
			"<OperatorsTopic>", false},
	} {
		told, to, warnings := toldOf(t, test.context)
		expect.Same(t, name+": "+test.reason, test.told, told)
		expect.Same(t, "the topic", test.topic, to)
		expect.Same(t, fmt.Sprintf("among %q it is warned", warnings), test.warned,
			slices.ContainsFunc(warnings, func(w string) bool {
				return strings.Contains(w, "Alarms reach nobody") && strings.Contains(w, "-c alarm-email=ADDRESS") &&
					strings.Contains(w, "-c alarm-topic=ARN")
			}))
	}
}

// A topic of the stack's own is written to by CloudWatch and by the rule.
func TestTheTopicOfAnAddress(t *testing.T) {
	made := must(t, chosen)
	writers := map[string]bool{}
	for _, s := range list(at(made.one(t, "AWS::SNS::TopicPolicy", ""), "PolicyDocument", "Statement")) {
		if at(s, "Effect") == "Allow" {
			writers[plain(at(s, "Principal", "Service"))+" for "+plain(at(s, "Condition"))] = true
		}
	}
	expect.Same(t, "who may write", map[string]bool{
		"cloudwatch.amazonaws.com for " + `{"StringEquals":{"aws:SourceAccount":{"Ref":"AWS::AccountId"}}}`: true,
		"events.amazonaws.com for ": true,
	}, writers)
}

func TestADashboardIsMadeOnRequest(t *testing.T) {
	expect.Says(t, "the dashboard", must(t, chosen).value(t, "CloudWatch::Dashboard DashboardBody"), metrics.Accepted,
		metrics.Settled, metrics.Answered, metrics.PastDue, "Errors", "Throttles", "Duration")
}
