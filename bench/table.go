package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A measure is one line of the table: the results of both brokers, round by round.
type measure struct {
	what, unit   string
	ours, theirs []float64
}

// ratios returns our results divided by theirs, round by round, sorted.
func (m *measure) ratios() []float64 {
	var out []float64
	for i := range m.ours {
		out = append(out, m.ours[i]/m.theirs[i])
	}
	slices.Sort(out)
	return out
}

func median(values []float64) float64 { return quantile(slices.Sorted(slices.Values(values)), 0.5) }

// A section is a table with a heading, and with names for what it compares, which default to Longshore and brokerapi.
type section struct {
	heading      string
	mine, theirs string
	measures     []*measure
}

func (s *section) add(what, unit string, ours, theirs float64) {
	i := slices.IndexFunc(s.measures, func(m *measure) bool { return m.what == what && m.unit == unit })
	if i < 0 {
		i = len(s.measures)
		s.measures = append(s.measures, &measure{what: what, unit: unit})
	}
	m := s.measures[i]
	m.ours, m.theirs = append(m.ours, ours), append(m.theirs, theirs)
}

// print writes the table as text that is also Markdown.
func (s *section) print(w io.Writer) {
	rows := [][]string{{"", "", cmp.Or(s.mine, "Longshore"), cmp.Or(s.theirs, "brokerapi"), "ratio", "min..max"}}
	last := ""
	for _, m := range s.measures {
		r := m.ratios()
		name := m.what
		if name == last {
			name = ""
		}
		last = m.what
		rows = append(rows, []string{
			name, m.unit, number(median(m.ours)), number(median(m.theirs)),
			ratio(quantile(r, 0.5)), ratio(r[0]) + ".." + ratio(r[len(r)-1]),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	_, _ = fmt.Fprintf(w, "\n%s\n\n", s.heading)
	for i, row := range rows {
		_, _ = fmt.Fprint(w, "|")
		for j, cell := range row {
			align := "%-*s"
			if j > 1 {
				align = "%*s"
			}
			_, _ = fmt.Fprintf(w, " "+align+" |", widths[j], cell)
		}
		_, _ = fmt.Fprintln(w)
		if i > 0 {
			continue
		}
		_, _ = fmt.Fprint(w, "|")
		for j, width := range widths {
			end := "-|"
			if j > 1 {
				end = ":|"
			}
			_, _ = fmt.Fprint(w, strings.Repeat("-", width+1)+end)
		}
		_, _ = fmt.Fprintln(w)
	}
}

// number formats a value with about three significant digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }
