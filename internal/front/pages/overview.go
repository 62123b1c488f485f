package pages

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Bounds of the overview.
const (
	// soon is how far ahead the overview looks for running and failed operations in the due index:
	// the reaper itself removes failures after eight days.
	soon = 9 * 24 * time.Hour
	// lately is the maximum age of the reports that the overview reads; an inventory is taken each
	// hour.
	lately = 3 * time.Hour
	// mostNeeds bounds the list of what needs a person.
	mostNeeds = 10
	// faultsOfStuck is the number of faults in a row from which an operation counts as stuck.
	faultsOfStuck = 3
)

// stuck reports whether an operation makes little or no progress by itself.
func stuck(r lifecycle.Record, now time.Time) bool {
	return r.InProgress() && (r.Operation.Trouble != "" || r.Operation.Faults >= faultsOfStuck || r.Operation.Overdue(now))
}

// failedForGood reports whether a creation or a deletion has failed. A failed creation that was set
// aside for the next one has no operation: the reaper removes it by itself.
func failedForGood(r lifecycle.Record) bool {
	return r.Operation != nil && (r.State == lifecycle.CreateFailed || r.State == lifecycle.DeleteFailed)
}

// why returns the reason why an operation is stuck or has failed.
func why(r lifecycle.Record, now time.Time) string {
	op := r.Operation
	switch {
	case op.Trouble != "":
		return op.Trouble
	case r.InProgress() && op.Overdue(now):
		return "It is past its deadline: its next step ends it unless it has finished by then."
	case r.InProgress() && op.Faults > 0:
		return plural(op.Faults, "fault") + " in a row; the log of the broker says which."
	}
	return op.Description
}

// A count is the totals of the due index. They are lower bounds unless the whole index was read.
type count struct {
	running, stuck, failed int
	needs                  []lifecycle.Record
	more                   string
}

func (v *visit) count() (c count) {
	whole := upTo(v, mostLooked, v.due(soon), func(r lifecycle.Record) {
		is := stuck(r, v.now)
		switch {
		case is:
			c.stuck++
		case r.InProgress():
			c.running++
		case failedForGood(r):
			c.failed++
		}
		if (is || failedForGood(r)) && len(c.needs) < mostNeeds {
			c.needs = append(c.needs, r)
		}
	})
	if !whole {
		c.more = "+"
	}
	return c
}

func (v *visit) overview() g.Node {
	c := v.count()
	inventory, err := v.Records.Inventory(v.Context())
	v.note(err)
	reports, err := v.Records.Reports(v.Context(), v.now.Add(-lately))
	v.note(err)
	var swept, counted *ledger.Report
	for i, r := range reports {
		if r.Swept != nil {
			swept = &reports[i]
		}
		if r.Counted != nil {
			counted = &reports[i]
		}
	}
	return v.page("Overview", true, v.verdict(c, inventory), v.needs(c),
		section("now", "Now", h.Dl(h.Class("numbers"),
			number("Running", c.running, c.more, "operations?show=running", ""),
			number("Stuck", c.stuck, c.more, "operations?show=stuck", "bad"),
			number("Failed", c.failed, c.more, "operations?show=failed", "bad"))),
		v.totals(counted), v.sweep(swept))
}

// number renders a total, with a tone unless it is zero, and a link to the page that lists what was
// counted.
func number(name string, n int, more, to, tone string) g.Node {
	value := g.Text(strconv.Itoa(n) + more)
	if to != "" {
		value = h.A(h.Href(to), value)
	}
	return h.Div(h.Dt(g.Text(name)), h.Dd(g.If(n > 0 && tone != "", h.Class(tone)), value))
}

// verdict renders the state of the broker in one line, or the reason why the reaper has halted.
func (v *visit) verdict(c count, i ledger.Inventory) g.Node {
	if i.Halt != nil {
		return alert("The reaper leaves orphans alone", i.Halt.Reason+" Look at what it found, and let it go on. It halted ",
			ago(i.Halt.At, v.now), example("Command", "longshore reaper resume"))
	}
	if n := c.stuck + c.failed; n > 0 {
		return h.P(dot("bad", strconv.Itoa(n)+c.more+" of the operations need you"))
	}
	if c.more != "" {
		return h.P(dot("off", fmt.Sprintf("Nothing needs you among the first %d records that are due", mostLooked)),
			g.Text(". The list of operations shows the others."))
	}
	return h.P(dot("good", "Nothing needs you"))
}

// needs renders the operations that are stuck or have failed.
func (v *visit) needs(c count) g.Node {
	if len(c.needs) == 0 {
		return nil
	}
	return section("needs", "What needs you",
		h.Ol(h.Class("history"), g.Map(c.needs, func(r lifecycle.Record) g.Node {
			return h.Li(v.doing(r), g.Text(" "), ago(r.Operation.Started, v.now),
				h.P(h.Class("details"), v.named(r), g.Text(" · "+short(r.Key.Platform))),
				para("why", clipped(why(r, v.now))))
		})),
		g.If(c.stuck+c.failed > len(c.needs), hint("The list of operations shows the others.")))
}

// totals renders the totals of the last complete inventory.
func (v *visit) totals(r *ledger.Report) g.Node {
	if r == nil {
		return section("totals", "Totals", hint("No inventory was taken in the last three hours; one is due each hour."))
	}
	n := r.Counted
	list := func(title string, names []string) g.Node {
		if len(names) == 0 {
			return nil
		}
		shown := names[:min(len(names), mostNeeds)]
		return alert(title, clipped(strings.Join(shown, "; "))+more(len(names)-len(shown)))
	}
	away := n.InQuarantine + len(n.Quarantined)
	return section("totals", "Totals", hint("As of the last inventory, ", ago(r.Ended, v.now), g.Text(".")),
		h.Dl(h.Class("numbers"), number("Things", n.Things, "", "", ""), number("With a record", n.Owned, "", "", ""),
			number("In quarantine", away, "", "quarantine", "bad"), number("Retained", n.Retained, "", "retained", "")),
		list("Could not be listed", n.Unreached), list("Different from their record", n.Odd))
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// sweep renders the reaper's last run that had something to do.
func (v *visit) sweep(r *ledger.Report) g.Node {
	if r == nil {
		return section("sweep", "Last sweep", hint("The reaper had nothing to do in the last three hours."))
	}
	var did []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{r.Swept.Redriven, "started again"}, {r.Swept.Overdue, "past their deadline"}, {r.Swept.Reclaimed, "failures removed"},
		{r.Swept.Looks, "looked at once more"}, {r.Swept.Dropped, "forgotten"}, {r.Swept.Released, "released"},
		{r.Swept.Ended, "quarantines ended"}, {r.Swept.Removed, "retained ones removed"}, {r.Swept.Faults, "faults"},
	} {
		if part.n > 0 {
			did = append(did, fmt.Sprintf("%s %d", part.what, part.n))
		}
	}
	return section("sweep", "Last sweep", h.P(g.Text("Found work "), ago(r.Ended, v.now), g.Text(": "+
		first(strings.Join(did, ", "), "others came first")+".")))
}
