// Package report writes what a run of the conformance kit found: as text for a
// reader, as JSON for a program, as JUnit XML for a build server. What was
// found, and what it means, it leaves to package conformance.
package report

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/kit/conformance"
)

// A Writer writes a report in one format.
type Writer func(w io.Writer, r conformance.Report) error

// Formats are the writers by the names that users give.
var Formats = map[string]Writer{"text": Text, "json": JSON, "junit": JUnit}

func version(minor int) string { return "2." + strconv.Itoa(minor) }

// A tally counts outcomes.
type tally struct {
	Passed        int `json:"passed"`
	Failed        int `json:"failed"`
	Blocked       int `json:"blocked"`
	NotApplicable int `json:"not_applicable"`
}

func (t *tally) add(o conformance.Outcome) {
	switch o {
	case conformance.Passed:
		t.Passed++
	case conformance.Failed:
		t.Failed++
	case conformance.Blocked:
		t.Blocked++
	case conformance.NotApplicable:
		t.NotApplicable++
	}
}

// A row is the tally of the rules that came with one version.
type row struct {
	Version string `json:"version"`
	tally
}

// byLevel counts the outcomes by what the documents ask, the firmest first.
func byLevel(results []conformance.Result) []level {
	var out []level
	for l := conformance.Must; l >= conformance.May; l-- {
		var t tally
		for _, r := range results {
			if r.Level == l {
				t.add(r.Outcome)
			}
		}
		if t != (tally{}) {
			out = append(out, level{l.String(), t})
		}
	}
	return out
}

// A level is the tally of the cases of one level.
type level struct {
	Level string `json:"level"`
	tally
}

// byVersion counts the outcomes by the version that brought each rule.
func byVersion(results []conformance.Result) []row {
	minors := map[int]*tally{}
	for _, r := range results {
		if minors[r.Since] == nil {
			minors[r.Since] = &tally{}
		}
		minors[r.Since].add(r.Outcome)
	}
	var out []row
	for minor := range 100 {
		if t := minors[minor]; t != nil {
			out = append(out, row{version(minor), *t})
		}
	}
	return out
}

func total(results []conformance.Result) tally {
	var t tally
	for _, r := range results {
		t.add(r.Outcome)
	}
	return t
}

// Text writes all that did not pass, what was not applicable and why, and a
// summary by version.
func Text(w io.Writer, r conformance.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Open Service Broker API, asked as version %s: %s\n", version(r.Minor), r.URL)
	for _, result := range r.Results {
		if result.Outcome != conformance.Failed && result.Outcome != conformance.Blocked {
			continue
		}
		fmt.Fprintf(&b, "\n%s %s [%s] %s\n", strings.ToUpper(result.Outcome.String()), result.ID, result.Level, result.Title)
		if result.Plan != "" {
			fmt.Fprintf(&b, "  plan     %s\n", result.Plan)
		}
		if result.Reason != "" {
			fmt.Fprintf(&b, "  reason   %s\n", result.Reason)
		}
		for _, f := range result.Failures {
			fmt.Fprintf(&b, "  rule     %s\n  request  %s\n  want     %s\n  got      %s\n", f.Rule, f.Request, f.Want, f.Got)
		}
		if result.Outcome == conformance.Failed {
			fmt.Fprintf(&b, "  source   %s\n", result.Source)
		}
	}
	skipped(&b, r.Results)
	unchecked(&b, r.Results)
	listed(&b, "Left behind, remove it by hand:", r.Left)
	listed(&b, "Perhaps left behind, since the broker's answer did not come:", r.Unsure)
	fmt.Fprintf(&b, "\n%-10s %7s %7s %8s %15s\n", "rules of", "passed", "failed", "blocked", "not applicable")
	for _, row := range byVersion(r.Results) {
		fmt.Fprintf(&b, "%-10s %7d %7d %8d %15d\n", row.Version, row.Passed, row.Failed, row.Blocked, row.NotApplicable)
	}
	t := total(r.Results)
	fmt.Fprintf(&b, "%-10s %7d %7d %8d %15d\n\n", "together", t.Passed, t.Failed, t.Blocked, t.NotApplicable)
	for _, row := range byLevel(r.Results) {
		fmt.Fprintf(&b, "%-10s %7d %7d %8d %15d\n", row.Level, row.Passed, row.Failed, row.Blocked, row.NotApplicable)
	}
	b.WriteString("\n")
	for _, h := range r.Hazards {
		fmt.Fprintf(&b, "Hazard [%s]: %s.\n  source   %s\n\n", h.Level, h.Text, h.Source)
	}
	fmt.Fprintf(&b, "%s in %v.\n", verdict(r), r.Duration.Round(100*time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func listed(b *strings.Builder, title string, paths []string) {
	if len(paths) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, path := range paths {
		fmt.Fprintf(b, "  %s\n", path)
	}
}

// byReason gives the cases of an outcome by the reason, and the reasons in the order
// in which they come.
func byReason(results []conformance.Result, o conformance.Outcome) (reasons []string, ids map[string][]string) {
	ids = map[string][]string{}
	for _, result := range results {
		if result.Outcome != o || result.Reason == "" {
			continue
		}
		if ids[result.Reason] == nil {
			reasons = append(reasons, result.Reason)
		}
		ids[result.Reason] = append(ids[result.Reason], result.ID)
	}
	return reasons, ids
}

// skipped lists why cases were not applicable, those of one reason together.
func skipped(b *strings.Builder, results []conformance.Result) {
	reasons, ids := byReason(results, conformance.NotApplicable)
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(len(ids[b]), len(ids[a])) })
	if len(reasons) > 0 {
		b.WriteString("\nNot applicable:\n")
	}
	for _, reason := range reasons {
		fmt.Fprintf(b, "  %s\n    %s\n", reason, strings.Join(ids[reason], ", "))
	}
}

// unchecked lists what cases that passed could not look at.
func unchecked(b *strings.Builder, results []conformance.Result) {
	reasons, ids := byReason(results, conformance.Passed)
	for _, reason := range reasons {
		fmt.Fprintf(b, "\nNot checked by %s: %s\n", strings.Join(ids[reason], ", "), reason)
	}
}

func verdict(r conformance.Report) string {
	failed := r.Failures(conformance.Must)
	switch {
	case r.Interrupted:
		return "Interrupted: not every case was asked"
	case r.Conforms() && r.Count(conformance.Failed) == 0:
		return "The broker conforms to all that was asked"
	case r.Conforms():
		return fmt.Sprintf("The broker conforms: nothing failed that a document says MUST of; %d weaker cases did", r.Count(conformance.Failed))
	case failed+r.Count(conformance.Blocked) == 0:
		return "Nothing failed that a document says MUST of, but something was left behind"
	default:
		return fmt.Sprintf("The broker does not conform: %d failed that a document says MUST of, %d were blocked", failed,
			r.Count(conformance.Blocked))
	}
}

// document is the report as JSON. Its members are a promise to programs.
type document struct {
	URL             string   `json:"url"`
	Version         string   `json:"api_version"`
	Conforms        bool     `json:"conforms"`
	Interrupted     bool     `json:"interrupted"`
	DurationSeconds float64  `json:"duration_seconds"`
	Totals          tally    `json:"totals"`
	ByVersion       []row    `json:"by_version"`
	ByLevel         []level  `json:"by_level"`
	LeftBehind      []string `json:"left_behind"`
	// Perhaps left behind: the broker's answer did not come.
	Unsure  []string `json:"perhaps_left_behind"`
	Hazards []hazard `json:"hazards"`
	Cases   []entry  `json:"cases"`
}

type hazard struct {
	Level  string  `json:"level"`
	Text   string  `json:"text"`
	Source *source `json:"source,omitempty"`
}

type entry struct {
	ID              string    `json:"id"`
	Section         string    `json:"section"`
	Title           string    `json:"title"`
	Level           string    `json:"level"`
	Since           string    `json:"since"`
	Source          *source   `json:"source,omitempty"`
	Plan            string    `json:"plan,omitempty"`
	Outcome         string    `json:"outcome"`
	Reason          string    `json:"reason,omitempty"`
	Failures        []failure `json:"failures,omitempty"`
	DurationSeconds float64   `json:"duration_seconds"`
}

// source is the sentence that decides a case, and the versions that it holds
// for; a case that no document asks for has none.
type source struct {
	Document string `json:"document"`
	Section  string `json:"section"`
	From     string `json:"from"`
	To       string `json:"to,omitempty"`
	Sentence string `json:"sentence"`
}

func sourceOf(s conformance.Source) *source {
	if s.Sentence == "" {
		return nil
	}
	out := &source{Document: s.Document, Section: s.Section, From: version(s.From), Sentence: s.Sentence}
	if s.To != 0 {
		out.To = version(s.To)
	}
	return out
}

type failure struct {
	Rule    string `json:"rule"`
	Request string `json:"request"`
	Want    string `json:"want"`
	Got     string `json:"got"`
}

// JSON writes everything.
func JSON(w io.Writer, r conformance.Report) error {
	d := document{
		URL: r.URL, Version: version(r.Minor), Conforms: r.Conforms(), Interrupted: r.Interrupted, DurationSeconds: r.Duration.Seconds(),
		Totals: total(r.Results), ByVersion: byVersion(r.Results), ByLevel: byLevel(r.Results), LeftBehind: append([]string{}, r.Left...),
		Unsure: append([]string{}, r.Unsure...), Hazards: []hazard{}, Cases: []entry{},
	}
	for _, h := range r.Hazards {
		d.Hazards = append(d.Hazards, hazard{h.Level.String(), h.Text, sourceOf(h.Source)})
	}
	for _, result := range r.Results {
		e := entry{
			ID: result.ID, Section: result.Section, Title: result.Title, Level: result.Level.String(), Since: version(result.Since),
			Plan:   result.Plan,
			Source: sourceOf(result.Source), Outcome: result.Outcome.String(), Reason: result.Reason, DurationSeconds: result.Duration.Seconds(),
		}
		for _, f := range result.Failures {
			e.Failures = append(e.Failures, failure(f))
		}
		d.Cases = append(d.Cases, e)
	}
	out, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

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

// JUnit writes one suite for each section. A blocked case is an error, one
// that is not applicable is skipped.
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
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}

// leftBehind is a suite of what is true of the run as a whole.
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
