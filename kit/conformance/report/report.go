// Package report writes the results of a run of the conformance kit: as text for a reader, as JSON for a program,
// as JUnit XML for a build server. The results and their meaning are the business of package conformance.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/longshore/longshore/kit/conformance"
)

// A Writer writes a report in one format.
type Writer func(w io.Writer, r conformance.Report) error

// Formats are the writers, by the names that users give.
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

// A row is the tally of the rules that one version introduced.
type row struct {
	Version string `json:"version"`
	tally
}

// byLevel counts the outcomes by level, the strictest level first.
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

// byVersion counts the outcomes by the version that introduced each rule.
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

// Text writes everything that did not pass, what was not applicable and why, and a summary by version.
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
	_, err := io.WriteString(w, strings.Map(printable, b.String()))
	return err
}

// printable replaces a control character by a space. Hazard: a broker's texts would command the terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' {
		return ' '
	}
	return r
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

// byReason groups the cases with an outcome by reason, and returns the reasons in the order of
// their first appearance.
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

// skipped lists why cases were not applicable, grouped by reason.
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

// unchecked lists what passed cases could not check.
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
		return fmt.Sprintf("The broker conforms: nothing failed that a document says MUST of; %d weaker cases did",
			r.Count(conformance.Failed))
	case failed+r.Count(conformance.Blocked) == 0:
		return "Nothing failed that a document says MUST of, but something was left behind"
	default:
		return fmt.Sprintf("The broker does not conform: %d failed that a document says MUST of, %d were blocked", failed,
			r.Count(conformance.Blocked))
	}
}
