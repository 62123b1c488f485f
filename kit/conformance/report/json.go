package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/longshore/longshore/kit/conformance"
)

// document is the report as JSON. Programs rely on its members.
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
	// Unsure may be left behind: the broker's answer did not come.
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

// source is the sentence that decides a case, and the versions for which it holds; cases that no
// document covers have none.
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

// JSON writes the complete report as JSON.
func JSON(w io.Writer, r conformance.Report) error {
	d := document{
		URL: r.URL, Version: version(r.Minor), Conforms: r.Conforms(), Interrupted: r.Interrupted,
		DurationSeconds: r.Duration.Seconds(), Totals: total(r.Results), ByVersion: byVersion(r.Results),
		ByLevel: byLevel(r.Results), LeftBehind: append([]string{}, r.Left...),
		Unsure: append([]string{}, r.Unsure...), Hazards: []hazard{}, Cases: []entry{},
	}
	for _, h := range r.Hazards {
		d.Hazards = append(d.Hazards, hazard{h.Level.String(), h.Text, sourceOf(h.Source)})
	}
	for _, result := range r.Results {
		e := entry{
			ID: result.ID, Section: result.Section, Title: result.Title, Level: result.Level.String(),
			Since: version(result.Since), Plan: result.Plan,
			Source: sourceOf(result.Source), Outcome: result.Outcome.String(), Reason: result.Reason,
			DurationSeconds: result.Duration.Seconds(),
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
