package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/kit/conformance"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *message `xml:"failure"`
	Error   *message `xml:"error"`
	Skipped *message `xml:"skipped"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes one test suite for each section. A blocked case becomes an error, and a case that is
// not applicable is skipped.
func JUnit(w io.Writer, r conformance.Report) error {
	all := suites{Name: "Open Service Broker API " + version(r.Minor), Time: inSeconds(r.Duration)}
	for _, result := range r.Results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != result.Section {
			all.Suites = append(all.Suites, suite{Name: result.Section})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := testcase{Name: result.ID + " [" + result.Level.String() + "] " + result.Title, Class: "osb." + version(result.Since),
			Time: inSeconds(result.Duration)}
		switch result.Outcome {
		case conformance.Failed:
			s.Failures++
			c.Failure = &message{Message: result.Title, Text: lines(result)}
		case conformance.Blocked:
			s.Errors++
			c.Error = &message{Message: result.Reason}
		case conformance.NotApplicable:
			s.Skipped++
			c.Skipped = &message{Message: result.Reason}
		}
		s.Tests++
		s.Cases = append(s.Cases, c)
	}
	if extra := leftBehind(r); extra != nil {
		all.Suites = append(all.Suites, *extra)
	}
	for _, s := range all.Suites {
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors,
			all.Skipped+s.Skipped
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}

// leftBehind returns a suite for what concerns the run as a whole; nil if there is nothing to report.
func leftBehind(r conformance.Report) *suite {
	s := suite{Name: "run", Tests: 1, Errors: 1}
	switch {
	case len(r.Left)+len(r.Unsure) > 0:
		s.Cases = []testcase{{Name: "everything that was made is removed", Class: "osb", Time: "0.000",
			Error: &message{Message: "left behind", Text: strings.Join(slices.Concat(r.Left, r.Unsure), "\n")}}}
	case r.Interrupted:
		s.Cases = []testcase{{Name: "every case is asked", Class: "osb", Time: "0.000", Error: &message{Message: "interrupted"}}}
	default:
		return nil
	}
	return &s
}

func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

func lines(result conformance.Result) string {
	var texts []string
	for _, f := range result.Failures {
		texts = append(texts, f.String())
	}
	texts = append(texts, "source: "+result.Source.String())
	return strings.Join(texts, "\n")
}
