package report_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/golden"
	"github.com/longshore/longshore/kit/conformance"
	"github.com/longshore/longshore/kit/conformance/report"
)

func sample() conformance.Report {
	const must, should, document = conformance.Must, conformance.Should, "Open Service Broker API"
	const notOffered = "the broker does not offer a plan that is provisioned asynchronously"
	return conformance.Report{
		URL: "https://broker.example.com", Minor: 17, Duration: 83500 * time.Millisecond,
		Left:   []string{"/v2/service_instances/i (made by PROV-01): its deletion ended: failed"},
		Unsure: []string{"/v2/service_instances/j (asked for by PROV-01): DELETE had no answer: 502 \"\""},
		Hazards: []conformance.Hazard{{Level: should, Text: "the broker takes any password", Source: conformance.Source{
			Level: should, From: 13, Document: document, Section: "Platform to Service Broker Authentication",
			Sentence: "it is RECOMMENDED that …"}}},
		Results: []conformance.Result{
			{ID: "HDR-01", Section: "version header", Title: "version 2.9 is served", Level: must, Since: 9,
				Outcome: conformance.Passed, Duration: 4 * time.Millisecond, Reason: "something that could not be looked at"},
			{ID: "PROV-08/space", Section: "provision", Title: "another request for a ready instance conflicts: space",
				Level: must, Since: 9, Plan: "db/small", Outcome: conformance.Failed,
				Source: conformance.Source{Level: must, From: 12, Document: document, Section: "Provisioning, 409 Conflict",
					Sentence: "MUST be returned if …"},
				Failures: []conformance.Failure{{Rule: "PROV-08", Want: "status 409",
					Request: "PUT /v2/service_instances/i?accepts_incomplete=true as 2.17",
					Got:     `200 {"dashboard_url":"https://d.example.com/?a=1&b=<2>"}`}}},
			{ID: "PROV-10", Section: "provision", Title: "an identical request while provisioning is answered 202", Level: must,
				Since: 12, Outcome: conformance.NotApplicable, Reason: notOffered},
			{ID: "LOP-01", Section: "last operation", Title: "a running operation is in progress", Level: must, Since: 9,
				Outcome: conformance.NotApplicable, Reason: notOffered},
			{ID: "BIND-02", Section: "bind", Title: "an identical request gives the same credentials", Level: should, Since: 9,
				Plan: "db/small", Outcome: conformance.Blocked, Reason: "a binding of a ready instance: PUT was answered 500"},
		},
	}
}

func written(t *testing.T, format string, r conformance.Report) string {
	t.Helper()
	var out strings.Builder
	expect.OK(t, report.Formats[format](&out, r))
	return out.String()
}

func TestGolden(t *testing.T) {
	good := sample()
	good.Results, good.Left, good.Unsure, good.Hazards = good.Results[:1], nil, nil, nil
	for name, r := range map[string]conformance.Report{"bad": sample(), "good": good} {
		for format := range report.Formats {
			t.Run(name+"."+format, func(t *testing.T) {
				got := written(t, format, r)
				golden.File(t, "testdata/"+name+"."+format, got)
				if format == "json" && !json.Valid([]byte(got)) {
					t.Error("it is no JSON")
				}
			})
		}
	}
}

// A broker's texts do not command the terminal.
func TestTextIsPrintable(t *testing.T) {
	r := sample()
	r.Results[1].Failures[0].Got = "400 \x1b[2J\u009b2J\r"
	if got := written(t, "text", r); strings.ContainsAny(got, "\x1b\u009b\r") || !strings.Contains(got, "400  [2J 2J") {
		t.Errorf("%q", got)
	}
}

// Build servers read the XML: the counts agree with the elements.
func TestJUnitIsXML(t *testing.T) {
	var parsed struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Tests int `xml:"tests,attr"`
			Cases []struct {
				Failure *struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	expect.OK(t, xml.Unmarshal([]byte(written(t, "junit", sample())), &parsed))
	if parsed.Tests != 6 || parsed.Failures != 1 || parsed.Errors != 2 || parsed.Skipped != 2 {
		t.Errorf("counts: %+v", parsed)
	}
	n, told := 0, false
	for _, s := range parsed.Suites {
		if s.Tests != len(s.Cases) {
			t.Errorf("a suite says %d and has %d cases", s.Tests, len(s.Cases))
		}
		for _, c := range s.Cases {
			n++
			told = told || c.Failure != nil && strings.Contains(c.Failure.Text, "PROV-08: PUT /v2/service_instances/i") &&
				strings.Contains(c.Failure.Text, "b=<2>")
		}
	}
	if n != parsed.Tests || !told {
		t.Errorf("%d cases, told %v", n, told)
	}
}
