package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/metrics"
)

// alarmsOf describes the alarms of a template, by their ids.
func alarmsOf(t *testing.T, made template) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, id := range made.of("AWS::CloudWatch::Alarm") {
		out[strings.TrimPrefix(unhashed(id), "Alarms")] = made.Resources[id].Properties
	}
	return out
}

func TestAlarms(t *testing.T) {
	const five = "300"
	got := map[string]string{}
	for id, p := range alarmsOf(t, must(t, usual)) {
		dimensions := map[string]string{}
		list, _ := p["Dimensions"].([]any)
		for _, d := range list {
			dimensions[plain(at(d, "Name"))] = plain(at(d, "Value"))
		}
		if plain(p["Period"]) != five {
			t.Errorf("%s looks at periods of %s s", id, plain(p["Period"]))
		}
		got[id] = fmt.Sprintf("%s %s of %s%s %v over %v, without data %s",
			plain(p["Namespace"]), plain(p["Statistic"]), plain(p["MetricName"]),
			map[string]string{"GreaterThanOrEqualToThreshold": " >=", "LessThanThreshold": " <"}[plain(p["ComparisonOperator"])],
			p["Threshold"], periods(p), plain(p["TreatMissingData"]))
		for _, name := range slices.Sorted(maps.Keys(dimensions)) {
			got[id] += " " + name + "=" + dimensions[name]
		}
	}
	want := map[string]string{
		"Failing":              "AWS/ApiGateway Sum of 5XXError >= 5 over 1, without data notBreaching ApiName=Longshore",
		"ApiErrors":            "AWS/Lambda Sum of Errors >= 3 over 1, without data notBreaching FunctionName=<ApiFunction>",
		"ApiThrottled":         "AWS/Lambda Sum of Throttles >= 1 over 2, without data notBreaching FunctionName=<ApiFunction>",
		"ProvisionerErrors":    "AWS/Lambda Sum of Errors >= 3 over 1, without data notBreaching FunctionName=<ProvisionerFunction>",
		"ProvisionerThrottled": "AWS/Lambda Sum of Throttles >= 1 over 2, without data notBreaching FunctionName=<ProvisionerFunction>",
		"ReaperErrors":         "AWS/Lambda Sum of Errors >= 3 over 1, without data notBreaching FunctionName=<ReaperFunction>",
		"ReaperThrottled":      "AWS/Lambda Sum of Throttles >= 1 over 2, without data notBreaching FunctionName=<ReaperFunction>",
		"Stuck":                "Longshore Maximum of PastDue >= 1 over 3, without data notBreaching Stack=Longshore",
		"ReaperHalted":         "Longshore Maximum of Halted >= 1 over 1, without data notBreaching Stack=Longshore",
		"DeadLetters":          "AWS/SQS Sum of NumberOfMessagesSent >= 1 over 1 of 4, without data notBreaching QueueName=<DeadLettersQueue.QueueName>",
		"NoReaper":             "Longshore SampleCount of PastDue < 1 over 2, without data breaching Stack=Longshore",
		"TableThrottled":       "AWS/DynamoDB Sum of ThrottledRequests >= 10 over 2, without data notBreaching TableName=<StateTable>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if metrics.Namespace != "Longshore" {
		t.Errorf("the broker's own metrics are in %q", metrics.Namespace)
	}
}

// periods is in how many periods something has to be seen.
func periods(p map[string]any) string {
	if some := p["DatapointsToAlarm"]; some != nil {
		return fmt.Sprintf("%v of %v", some, p["EvaluationPeriods"])
	}
	return fmt.Sprint(p["EvaluationPeriods"])
}

// Every alarm is about what happens, and ends by itself when that has ended:
// what is about what lies somewhere rings until somebody clears it away, and
// says nothing about what comes meanwhile.
func TestNoAlarmLatches(t *testing.T) {
	for id, p := range alarmsOf(t, must(t, usual)) {
		switch metric := plain(p["MetricName"]); metric {
		case "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible", "ApproximateAgeOfOldestMessage":
			t.Errorf("%s watches %s, which stays until a queue is emptied", id, metric)
		}
	}
}

// Every alarm says where to read on, and there is something to read there.
func TestEveryAlarmIsInTheRunbook(t *testing.T) {
	raw, err := os.ReadFile("../" + runbook)
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			headings[strings.ToLower(strings.TrimSpace(title))] = true
		}
	}
	for id, p := range alarmsOf(t, must(t, usual)) {
		_, anchor, ok := strings.Cut(plain(p["AlarmDescription"]), runbook+"#")
		if !ok || anchor != strings.ToLower(id) || !headings[anchor] {
			t.Errorf("%s says %q, and the runbook has nothing of it", id, plain(p["AlarmDescription"]))
		}
	}
}

func TestAlarmsAreToldWhereItIsChosen(t *testing.T) {
	for id, p := range alarmsOf(t, must(t, usual)) {
		if p["AlarmActions"] != nil || p["OKActions"] != nil {
			t.Errorf("%s tells somebody", id)
		}
	}
	const topic = "arn:aws:sns:eu-central-1:111122223333:operators"
	made, err := synthesized(map[string]any{ContextAlarmTopic: topic})
	if err != nil {
		t.Fatal(err)
	}
	for id, p := range alarmsOf(t, made) {
		if plain(p["AlarmActions"]) != topic || plain(p["OKActions"]) != topic {
			t.Errorf("%s tells %s and %s", id, plain(p["AlarmActions"]), plain(p["OKActions"]))
		}
	}
}

func TestThereIsOneDashboard(t *testing.T) {
	p := must(t, usual).one(t, "AWS::CloudWatch::Dashboard", "")
	body := plain(p["DashboardBody"])
	for _, name := range []string{metrics.Accepted, metrics.Settled, metrics.Answered, metrics.PastDue, "Errors", "Throttles", "Duration"} {
		if !strings.Contains(body, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	if p["DashboardName"] != "Longshore" {
		t.Errorf("the dashboard is called %s", plain(p["DashboardName"]))
	}
}
