package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

// A rowTable is a table of rows.
type rowTable = table[operator.Row]

// valueOf returns what stands in a column of a table of rows.
func valueOf(r operator.Row, column string) any {
	switch column {
	case "instance":
		return idOf(r.Instance, r)
	case "binding":
		return idOf(r.Binding, r)
	case "state":
		return r.State
	case "offering":
		return r.Service
	case "plan":
		return r.Plan
	case "created":
		return r.Created
	case "operation":
		return phase(r.Operation)
	case "kind":
		return r.Operation.Kind
	case "phase":
		return r.Operation.Phase
	case "percent":
		return r.Operation.Percent
	case "started":
		return r.Operation.Started
	case "token":
		return r.Operation.Token
	case "platform":
		return cmp.Or(r.PlatformName, r.Platform)
	case "organization":
		return r.Organization
	case "space":
		return r.Space
	case "provider":
		return r.Provider
	case "made":
		return strings.Join(r.Made, ", ")
	case "name":
		return r.Kept.Name
	case "since":
		return r.Kept.Since
	case "until":
		if r.State != string(lifecycle.Quarantined) {
			return time.Time{} // it never is deleted, or its deletion has begun
		}
		return r.Kept.Until
	case "freed":
		return r.Kept.Freed
	case "is_at":
		return r.IsAt
	case "plan_is_at":
		return r.PlanIsAt
	case "edited":
		return map[bool]string{true: "yes"}[r.Edited]
	default:
		panic("no column " + column)
	}
}

// listings are the tables of instances, bindings and operations.
var listings = map[operator.What]rowTable{
	operator.Instances: {of: valueOf, order: "-created",
		columns: "instance state offering plan created",
		wide:    "operation platform organization space"},
	operator.Bindings: {of: valueOf, order: "-created",
		columns: "binding state instance created",
		wide:    "operation offering plan platform"},
	operator.Operations: {of: valueOf, order: "-started",
		columns: "instance kind phase percent started",
		wide:    "binding platform token"},
}

// newListing makes the command that lists instances, bindings or operations.
func newListing(what operator.What) *cobra.Command {
	one, id := "ID", func(r operator.Row) string { return cmp.Or(r.Binding, r.Instance) }
	if what == operator.Operations {
		one, id = "TOKEN", tokenOf
	}
	c := &cobra.Command{
		Use: fmt.Sprintf("%s [%s]", what, one), Args: takes(0, 1, ""),
		Short: fmt.Sprintf("List the %s, or show one in full", what),
		Long: fmt.Sprintf("List the %s, the newest first, or show in full the one whose %s is\ngiven, whole or by its beginning.",
			what, one),
	}
	t := listings[what]
	t.what, t.list, t.none = what, operator.List, fmt.Sprintf("No %s.", what)
	a := asks(c, t)
	c.ValidArgsFunction = onlyFirst(ids(operator.List, what, id))
	follow := c.Flags().Bool("watch", false, "follow the running operations until all have ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		a.query.ID = strings.Join(args, "")
		if *follow {
			if a.json() || a.query.State != "" && a.query.State != "running" {
				return misused("--watch follows what runs, in lines of text: leave out -o json, and any --state but running")
			}
			if err := a.bound(); err != nil {
				return err
			}
			link, closing, err := a.broker.open(c.Context())
			if err != nil {
				return err
			}
			defer closing()
			return watch(c.Context(), link, a.query, c.OutOrStdout())
		}
		return a.answer(c, func(out io.Writer, all []operator.Row) error {
			switch {
			case a.query.ID == "" || a.json() || len(all) > 1:
				t.print(out, a.view, all)
				tellWaits(out, a.view, all)
			case len(all) == 0:
				return fmt.Errorf("none of the %s is called %q, or begins like it: `%s` lists them", what, a.query.ID,
					"longshore "+what)
			default:
				show(out, all[0])
			}
			return nil
		})
	}
	return c
}

// tellWaits prints below a table what operations wait for.
func tellWaits(out io.Writer, v view, all []operator.Row) {
	waits := map[string]int{}
	for _, r := range all {
		if op := r.Operation; op != nil && op.Trouble != "" && !v.json() && !v.noHeaders {
			waits[op.Trouble]++
		}
	}
	for what, n := range sorted.Map(waits) { // there are few: one for each target
		printf(out, "%d of these wait for %s\n", n, oneLine(what))
	}
}

// idOf returns the id of a row, or its handle for a former life, whose id another life may have.
func idOf(id string, r operator.Row) string {
	if r.Life == "" {
		return id
	}
	return lifecycle.Handle(id, r.Life)
}

func phase(op *operator.Operation) string {
	if op == nil {
		return ""
	}
	if op.Phase == string(lifecycle.InProgress) {
		return fmt.Sprintf("%s, %d %%", op.Kind, op.Percent)
	}
	return op.Kind + " " + op.Phase
}

// stamp formats a time for printing; empty for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// show prints all members of a row, each under its name in JSON. A row came as JSON, and can be written as such.
func show(out io.Writer, r operator.Row) {
	raw, _ := json.Marshal(r)
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	members(w, raw, "")
	_ = w.Flush()
}

// members prints the members of an object that json.Marshal has written, in their order.
func members(w io.Writer, object json.RawMessage, indent string) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		var raw json.RawMessage
		_ = d.Decode(&raw)
		text, list := string(raw), []string(nil)
		switch raw[0] {
		case '{':
			printf(w, "%s%s\n", indent, name)
			members(w, raw, indent+"  ")
			continue
		case '[':
			_ = json.Unmarshal(raw, &list)
			text = strings.Join(list, ", ")
		case '"':
			_ = json.Unmarshal(raw, &text)
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				text = stamp(at)
			}
		}
		printf(w, "%s%s\t%s\n", indent, strings.ReplaceAll(fmt.Sprint(name), "_", " "), oneLine(text))
	}
}
