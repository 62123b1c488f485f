package pages

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Bounds of a page, so that it stays under 30 kB however long an instance lives.
const (
	mostBindings = 20
	mostEntries  = 20
	longestText  = 300 // characters of one entry
)

// A view is all the data that the page of an instance shows.
type view struct {
	lifecycle.Record
	now      time.Time
	offering catalog.Offering
	plan     catalog.Plan // empty if it is not in the catalog
	names    lifecycle.Names
	bindings []lifecycle.Record
	more     bool // there are more bindings
	history  []lifecycle.Entry
	facts    ledger.Facts
	samples  []Sample
	acts     bool // the session may give orders
	// who tells an operator who asked for an operation; it is nil for users.
	who func(lifecycle.Entry) string
}

// dashboard shows the page of an instance to its users.
func (v *visit) dashboard() {
	k := v.key()
	sees, acting, err := v.roles(ScopeOf(k))
	switch {
	case err != nil:
		v.fail(err)
		return
	case !sees:
		v.signOn(ScopeOf(k), signIn(k.Instance))
		return
	}
	is, err := v.view(k)
	switch {
	case err != nil:
		v.fail(err)
	case is.State == lifecycle.Absent:
		v.show(http.StatusNotFound, message("This instance is gone", "The broker has no record of it any more."))
	default:
		is.acts = acting != nil
		v.refresh(is)
		v.show(http.StatusOK, is.page())
	}
}

// view reads all the data that the page shows.
func (v *visit) view(k lifecycle.Key) (*view, error) {
	is, ctx := &view{now: v.now}, v.Context()
	var record, facts, history, bindings error
	var reads sync.WaitGroup // the reads run in parallel
	reads.Go(func() { is.Record, record = v.Records.Record(ctx, k, v.now) })
	reads.Go(func() { is.facts, facts = v.Records.Facts(ctx, k) })
	reads.Go(func() { is.history, _, history = v.Records.History(ctx, k, "", mostEntries) })
	reads.Go(func() { is.bindings, _, bindings = v.Records.Bindings(ctx, k, "", mostBindings+1) })
	reads.Wait()
	if err := errors.Join(record, facts, history, bindings); err != nil {
		return nil, err
	}
	is.facts = is.facts.Of(is.Record)
	is.samples = v.Samples[is.Provider]
	is.offering, is.plan = v.planned(is.Record)
	// Entries of an earlier life of the id are left out: that life may have been in another space.
	is.history = slices.DeleteFunc(is.history, func(e lifecycle.Entry) bool { return e.Incarnation != is.Incarnation })
	is.names = v.namesOf(is.Record)
	if len(is.bindings) > mostBindings {
		is.bindings, is.more = is.bindings[:mostBindings], true
	}
	return is, nil
}

// planned returns the offering and the plan of an instance; empty ones if the plan has left the catalog.
func (s *Server) planned(r lifecycle.Record) (catalog.Offering, catalog.Plan) {
	o, p, _ := s.Plans.Plan(r.Attributes.ServiceID, r.Attributes.PlanID)
	return o, p
}

// namesOf decrypts the names of an instance; it returns none if they cannot be read.
func (v *visit) namesOf(r lifecycle.Record) lifecycle.Names {
	names, _ := v.Table.Names(v.Context(), r)
	return names
}

// title returns the name that people know the instance by, or its id.
func (v *view) title() string { return first(v.names.Instance, v.Key.Instance) }

func (v *view) page() g.Node {
	return layout(v.title(), h.Main(h.Data("live", ""), g.If(v.busy(), h.Data("busy", "")),
		v.head(), v.progress(), v.failure(),
		v.connect(),
		section("about", "About", v.about()),
		v.use(), v.bound(), v.happened(), v.foot(),
	))
}

// states has a tone for the dot, and a word, for each state.
var states = map[lifecycle.State]struct{ tone, word string }{
	lifecycle.Creating: {"busy", "Creating"}, lifecycle.Ready: {"good", "Ready"}, lifecycle.Updating: {"busy", "Updating"},
	lifecycle.CreateFailed: {"bad", "Failed"}, lifecycle.Deleting: {"busy", "Deleting"},
	lifecycle.DeleteFailed: {"bad", "Not deleted"}, lifecycle.Deleted: {"off", "Deleted"},
}

func (v *view) head() g.Node {
	where := strings.Join(present(v.names.Organization, v.names.Space, v.names.Namespace), " / ")
	return h.Header(
		h.P(h.Class("kind"), g.Text(first(v.offering.Name, "service instance")), g.If(where != "", g.Text(" in "+where))),
		h.H1(g.Text(v.title())), stateOf(v.Record))
}

// present returns the texts that are not empty.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(t string) bool { return t == "" })
}

// kinds has the words for operations: the noun, an operation in progress, one that has succeeded,
// and the latest one of an instance that has failed.
var kinds = map[lifecycle.Kind]struct{ noun, doing, done, failed string }{
	operation.Provision:   {"Creation", "Being created", "Created", "It could not be created"},
	operation.Update:      {"Update", "Being updated", "Updated", "The last update failed"},
	operation.Deprovision: {"Deletion", "Being deleted", "Deleted", "It could not be deleted"},
	operation.Bind:        {noun: "Binding", done: "Bound"},
	operation.Unbind:      {noun: "Unbinding", done: "Unbound"},
	operation.Quarantine:  {noun: "Quarantine", done: "Put into quarantine"},
	operation.Release:     {noun: "Release", done: "Released"},
}

// progress renders what is happening now, and how long it may take.
func (v *view) progress() g.Node {
	if !v.InProgress() {
		return nil
	}
	op := v.Operation
	expected := text("")
	if end := op.Started.Add(op.Expected); op.Expected > 0 && end.After(v.now) {
		expected = g.Group{g.Text(" Expected to be done "), ago(end, v.now), g.Text(".")}
	}
	return section("now", first(kinds[op.Kind].doing, "In progress"),
		h.P(g.Text("Begun "), ago(op.Started, v.now), g.Text("."), expected, g.Text(" The broker gives up "),
			ago(op.Deadline, v.now), g.Text(".")),
		h.Progress(g.If(op.Percent > 0, g.Group{h.Value(strconv.Itoa(op.Percent)), h.Max("100")}), h.Aria("label", "Progress")),
		para("said", op.Description))
}

// advice says what to do about a failure, by the state that the failure has left.
var advice = map[lifecycle.State]string{
	lifecycle.CreateFailed: "Delete this instance and create it again.",
	lifecycle.DeleteFailed: "Delete it again. In any case, the broker removes what is left after eight days.",
	lifecycle.Ready:        "The instance is unchanged. Repeat the update, or leave it.",
}

// failure renders why the latest operation failed, and what to do.
func (v *view) failure() g.Node {
	op := cmp.Or(v.FailedCreation(), v.Operation)
	if op == nil || op.Phase != lifecycle.Failed || v.State == lifecycle.Deleted {
		return nil
	}
	todo := advice[v.Seen()]
	switch {
	case op.Kind == operation.Deprovision && v.State == lifecycle.Ready: // refused before anything was removed
		todo = "The instance is unchanged. Do what the reason asks for and delete it again, or leave it."
	case v.Unusable:
		todo = "The instance has been unusable since then. Update it again, or delete it."
	}
	return section("failed", kinds[op.Kind].failed, h.Class("alert"), h.Role("status"),
		h.P(g.Text(first(op.Description, "The provider gave no reason."))), para("todo", todo),
		v.orderLink(orderDeletion))
}

func (v *view) about() g.Node {
	f := v.facts.Facts
	keeps := "Nothing: a deletion removes the data for good."
	if days := int(check.RetentionOf(v.Attributes.Snapshot) / (24 * time.Hour)); days > 0 {
		keeps = fmt.Sprintf("The data, for %s: until then, the operator can give it back.", plural(days, "day"))
	}
	return facts(
		fact{"Service", text(v.offering.Description)},
		fact{"Engine", text(f.Engine)},
		fact{"Plan", v.planFact()},
		fact{"Region", text(f.Region)},
		fact{"Address", text(f.Address)},
		fact{"Maintenance", text(f.Maintenance)},
		fact{"Cloud console", console(f.Console)},
		fact{"Upgrade", v.upgrade()},
		fact{"List price", text(pricesOf(v.plan.Metadata).String())},
		fact{"Created", ago(v.Created, v.now)},
		fact{"Updated", ago(v.Updated, v.now)},
		fact{"A deletion keeps", text(keeps)},
		fact{"Id", code(v.Key.Instance)},
	)
}

func (v *view) planFact() g.Node {
	if v.plan.ID == "" {
		return text("No longer offered. The instance goes on working.")
	}
	return g.Group{h.Strong(g.Text(v.plan.Name)), g.If(v.plan.Description != "", g.Text(" – "+v.plan.Description))}
}

// behind reports whether an instance does not have the current version of its plan.
func behind(r lifecycle.Record, p catalog.Plan) bool {
	next := p.MaintenanceInfo
	return next != nil && next.Version != r.Attributes.MaintenanceVersion && r.State != lifecycle.Deleted
}

// upgrade renders a notice of a newer version of the plan.
func (v *view) upgrade() g.Node {
	next := v.plan.MaintenanceInfo
	if !behind(v.Record, v.plan) {
		return nil
	}
	said := "Version " + next.Version + " of the plan is available."
	if next.Description != "" {
		said += " " + next.Description
	}
	return g.Group{g.Text(said), v.orderLink(orderUpgrade)}
}

// bound lists the bindings.
func (v *view) bound() g.Node {
	if v.State == lifecycle.Deleted {
		return nil
	}
	if len(v.bindings) == 0 {
		return section("bindings", "Bindings", hint("No application is bound, and there is no service key."))
	}
	heads := []string{"Application", "State", "Age", "Id"}
	expire := slices.ContainsFunc(v.bindings, func(b lifecycle.Record) bool { return !b.ExpiresAt.IsZero() })
	if expire {
		heads = append(heads, "Rotate by", "Expires")
	}
	return section("bindings", "Bindings",
		table(heads, v.bindings, func(b lifecycle.Record) []g.Node {
			state := states[b.Seen()]
			switch late := func(t time.Time) bool { return !t.IsZero() && !v.now.Before(t) }; {
			case b.State != lifecycle.Ready:
			case late(b.ExpiresAt):
				state.tone, state.word = "bad", "Expired"
			case late(b.RenewBefore):
				state.tone, state.word = "busy", "To be rotated"
			}
			cells := []g.Node{
				text(first(b.AppGUID, b.Route, "service key")), dot(state.tone, state.word), ago(b.Created, v.now),
				code(b.Key.Binding),
			}
			if expire {
				cells = append(cells, ago(b.RenewBefore, v.now), ago(b.ExpiresAt, v.now))
			}
			return cells
		}),
		g.If(v.more, hint(fmt.Sprintf("These are the first %d; your platform lists all.", mostBindings))))
}

// happened renders the history, the latest entry first.
func (v *view) happened() g.Node {
	if len(v.history) == 0 {
		return section("history", "History", hint("Nothing has ended yet."))
	}
	return section("history", "History",
		h.Ol(h.Class("history"), g.Map(v.history, func(e lifecycle.Entry) g.Node { return h.Li(v.entry(e)) })))
}

func (v *view) entry(e lifecycle.Entry) g.Node {
	tone, word := "good", kinds[e.Kind].done
	switch {
	case e.Act != "":
		tone, word = "off", "Operator: "+e.Act
	case e.Cancelled:
		tone, word = "off", "Cancelled by a deletion"
	case e.Phase == lifecycle.Failed:
		tone, word = "bad", kinds[e.Kind].noun+" failed"
	}
	by := "by your platform"
	switch {
	case e.Own || e.Act != "":
		by = "by the broker"
	case e.Asker.IdentityPlatform == here:
		by = "on this page"
	}
	if v.who != nil {
		by = first(named("by", v.who(e)), by)
	}
	details := present(
		took(e), by, named("application", e.AppGUID), named("parameters", strings.Join(e.Parameters, ", ")), v.planOf(e),
	)
	return g.Group{
		dot(tone, word), g.Text(" "), ago(e.Ended, v.now),
		para("details", strings.Join(details, " · ")),
		g.If(!e.Cancelled, para("why", clipped(e.Description))),
	}
}

func took(e lifecycle.Entry) string {
	if e.Started.IsZero() || e.Ended.Sub(e.Started) < time.Second {
		return ""
	}
	return "took " + span(e.Ended.Sub(e.Started))
}

func named(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " " + clipped(value)
}

// planOf returns the name of an entry's plan, if that is not the current plan.
func (v *view) planOf(e lifecycle.Entry) string {
	if e.PlanID == "" || e.PlanID == v.Attributes.PlanID {
		return ""
	}
	for _, p := range v.offering.Plans {
		if p.ID == e.PlanID {
			return "plan " + p.Name
		}
	}
	return ""
}

func (v *view) foot() g.Node {
	return h.Footer(
		h.P(g.Text("Times are relative; point at one for the exact time. "),
			h.Span(h.Class("nowrap"), g.Text("Shown "+v.now.UTC().Format("15:04 UTC")+"."))),
		posts("leave?"+query(v.Key), "Sign out", nil))
}
