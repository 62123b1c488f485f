package pages

import (
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
)

// called returns the name that people know an instance by, or its id.
func (v *visit) called(r lifecycle.Record) string {
	if r.IsBinding() {
		return r.Key.Instance // its names are in the instance's record
	}
	return first(v.namesOf(r).Instance, r.Key.Instance)
}

// named renders a link to the page of an instance.
func (v *visit) named(r lifecycle.Record) g.Node {
	return link(to(r.Key), short(v.called(r)))
}

// planOf returns the names of a record's offering and plan.
func (v *visit) planOf(r lifecycle.Record) string {
	o, p := v.planned(r)
	if p.ID == "" {
		return "a plan that is not offered any more"
	}
	return short(o.Name) + " / " + short(p.Name)
}

// ages are the ranges of an instance's age by which the list can be filtered.
var ages = []struct {
	value, words string
	from, to     time.Duration
}{
	{"day", "up to a day", 0, 24 * time.Hour}, {"month", "up to 30 days", 0, 30 * 24 * time.Hour},
	{"old", "more than 30 days", 30 * 24 * time.Hour, 1<<63 - 1}, {"older", "more than a year", 365 * 24 * time.Hour, 1<<63 - 1},
}

// takes reports whether an instance matches the filter. It compares names last, since they have to
// be decrypted.
func (v *visit) takes(q url.Values, r lifecycle.Record) bool {
	is := func(name string, values ...string) bool {
		asked := q.Get(name)
		return asked == "" || slices.ContainsFunc(values, func(has string) bool { return strings.EqualFold(asked, has) })
	}
	o, p := v.planned(r)
	for _, a := range ages {
		if age := v.now.Sub(r.Created); a.value == q.Get("age") && (age < a.from || age > a.to) {
			return false
		}
	}
	if !is("offering", o.Name) || !is("plan", p.Name) || !is("state", string(r.Seen())) {
		return false
	}
	if q.Get("organization")+q.Get("space") == "" {
		return true
	}
	in := v.namesOf(r)
	return is("organization", in.Organization, r.Attributes.OrganizationGUID) &&
		is("space", in.Space, in.Namespace, r.Attributes.SpaceGUID)
}

func (v *visit) instances() g.Node {
	q := v.URL.Query()
	list := listed(v, v.existing, func(r lifecycle.Record) bool { return v.takes(q, r) },
		[]string{"Instance", "State", "Plan", "Where", "Age"}, "There is no such instance.",
		func(r lifecycle.Record) []g.Node {
			in := v.namesOf(r)
			return []g.Node{v.named(r), stateOf(r), text(v.planOf(r)), text(first(where(in), short(r.Key.Platform))),
				ago(r.Created, v.now)}
		})
	return v.page("Instances", false, v.form(q), list)
}

// where joins the names of an organization and a space.
func where(in lifecycle.Names) string {
	return strings.Join(present(short(in.Organization), short(in.Space), short(in.Namespace)), " / ")
}

// form renders the filter of the list of instances; it sets the query of the URL, and needs no
// script.
func (v *visit) form(q url.Values) g.Node {
	type option struct{ value, words string }
	choice := func(name, label string, options []option) g.Node {
		return h.Label(g.Text(label), h.Select(h.Name(name), h.Option(h.Value(""), g.Text("any")),
			g.Map(options, func(o option) g.Node {
				return h.Option(h.Value(o.value), g.If(o.value == q.Get(name), h.Selected()), g.Text(o.words))
			})))
	}
	word := func(name, label string) g.Node {
		return h.Label(g.Text(label), h.Input(h.Type("text"), h.Name(name), h.Value(clipped(q.Get(name)))))
	}
	var offerings, inStates, old []option
	for _, o := range v.Offerings() {
		offerings = append(offerings, option{o.Name, short(o.Name)})
	}
	for _, s := range []lifecycle.State{lifecycle.Ready, lifecycle.Creating, lifecycle.Updating, lifecycle.Deleting,
		lifecycle.CreateFailed, lifecycle.DeleteFailed} {
		inStates = append(inStates, option{string(s), states[s].word})
	}
	for _, a := range ages {
		old = append(old, option{a.value, a.words})
	}
	return h.Form(h.Class("filter"), h.Method("get"), h.Action("instances"), h.Aria("label", "Filter"),
		choice("offering", "Offering", offerings), word("plan", "Plan"), choice("state", "State", inStates),
		choice("age", "Age", old), word("organization", "Organization"), word("space", "Space"),
		h.Button(h.Type("submit"), g.Text("Filter")), g.If(len(q) > 0, link("instances", "Show all")))
}

func stateOf(r lifecycle.Record) g.Node {
	state := states[r.Seen()]
	if r.Unusable && r.State == lifecycle.Ready {
		state.tone, state.word = "bad", "Unusable"
	}
	return dot(state.tone, state.word)
}

// doing renders what an operation does, or how it has ended.
func (v *visit) doing(r lifecycle.Record) g.Node {
	kind := kinds[r.Operation.Kind].noun
	switch {
	case stuck(r, v.now):
		return dot("bad", kind+", stuck")
	case r.InProgress():
		return dot("busy", kind)
	case r.Operation.Phase == lifecycle.Failed:
		return dot("bad", kind+" failed")
	}
	return dot("good", kind+" done")
}

func (v *visit) operations() g.Node {
	shows := map[string]func(lifecycle.Record) bool{
		"running": lifecycle.Record.InProgress, "failed": failedForGood,
		"stuck": func(r lifecycle.Record) bool { return stuck(r, v.now) },
	}
	show := v.URL.Query().Get("show")
	if shows[show] == nil {
		show = "running"
	}
	tab := func(s, name string) g.Node {
		return h.A(h.Href("operations?show="+s), g.If(s == show, h.Aria("current", "page")), g.Text(name))
	}
	tabs := h.Nav(h.Class("tabs"), h.Aria("label", "Operations"), tab("running", "Running"), tab("stuck", "Stuck"),
		tab("failed", "Failed"))
	list := listed(v, v.due(soon), shows[show], v.withActs("Operation", "Instance", "Begun", "Attempt", "Why"), "There is none.",
		func(r lifecycle.Record) []g.Node {
			return []g.Node{v.doing(r), v.named(r), ago(r.Operation.Started, v.now), g.Textf("%d", r.Operation.Attempt),
				text(clippedTo(why(r, v.now), 2*longestWord)), v.actLinks(r)}
		})
	return v.page("Operations", true, tabs, list)
}

func (v *visit) upgrades() g.Node {
	list := listed(v, v.existing, func(r lifecycle.Record) bool {
		_, p := v.planned(r)
		return behind(r, p)
	}, []string{"Instance", "State", "Plan", "Has", "Can have"},
		"Every instance has the version of its plan.", func(r lifecycle.Record) []g.Node {
			_, p := v.planned(r)
			has := first(short(r.Attributes.MaintenanceVersion), "none")
			return []g.Node{v.named(r), stateOf(r), text(v.planOf(r)), text(has), text(short(p.MaintenanceInfo.Version))}
		})
	return v.page("Upgrades", false, hint("These are behind the version of their plan. "+
		"Their users ask for the upgrade through the platform, such as by cf upgrade-service."), list)
}

func (v *visit) quarantine() g.Node {
	list := listed(v, v.due(forever), lifecycle.Record.OrphanStands,
		v.withActs("Thing", "State", "Provider", "Since", "Deleted"), "Nothing is in quarantine.",
		func(r lifecycle.Record) []g.Node {
			state, until := dot("bad", "Out of use"), ago(r.Kept.Until, v.now)
			if r.IsReleased() {
				state, until = dot("good", "Released"), text("never by the broker")
			}
			return []g.Node{code(short(r.Kept.Name)), state, text(short(r.Provider)), ago(r.Kept.Since, v.now), until,
				v.actLinks(r)}
		})
	return v.page("Quarantine", false, hint("No record explains these things. They are out of use, "+
		"so that whoever needs one notices before it is deleted."), list)
}

// forever reaches beyond every date on which a record is due.
const forever = 100 * 365 * 24 * time.Hour

func (v *visit) retained() g.Node {
	list := listed(v, v.due(forever), lifecycle.Record.IsRetained,
		[]string{"Instance", "Plan", "Since", "Removed", "Give it back"}, "Nothing is retained.",
		func(r lifecycle.Record) []g.Node {
			return []g.Node{text(short(r.Key.Instance)), text(v.planOf(r)), ago(r.Kept.Since, v.now), ago(r.Kept.Until, v.now),
				code("longshore undelete " + shell.Word(r.Handle()))}
		})
	return v.page("Retained", false, hint("Their users have deleted these instances, "+
		"and their plans keep the data for a time."), list)
}

func (v *visit) offerings() g.Node {
	type offer struct {
		catalog.Offering
		plan catalog.Plan
	}
	var all []offer
	for _, o := range v.Offerings() {
		for _, p := range o.Plans {
			all = append(all, offer{o, p})
		}
	}
	list := listed(v, once(all), nil, []string{"Offering", "Plan", "Version", "List price", "Made by"}, "Nothing is offered.",
		func(o offer) []g.Node {
			return []g.Node{
				link("instances?"+url.Values{"offering": {o.Name}, "plan": {o.plan.Name}}.Encode(), short(o.Name)),
				h.Strong(g.Text(short(o.plan.Name))), text(short(o.plan.Version())),
				text(short(pricesOf(o.plan.Metadata).String())), text(short(o.Provider)),
			}
		})
	return v.page("Offerings", false, list)
}

func (v *visit) platforms() g.Node {
	registry, err := v.Registry(v.Context())
	v.note(err)
	heads := []string{"Platform", "State", "Password", "Id", "Logs in at", "Sees"}
	list := listed(v, once(registry.Platforms), nil, heads, "No platform may log in.",
		func(p platforms.Platform) []g.Node {
			sees := first(clipped(strings.Join(p.Offerings, ", ")), "everything")
			given := text("age not known")
			if !p.Since.IsZero() {
				given = g.Group{g.Text("given "), ago(p.Since, v.now)}
			}
			return []g.Node{h.Strong(g.Text(short(p.Name))), v.login(p), given, code(short(p.ID)),
				code(short(p.Path + "/v2")), text(sees)}
		})
	return v.page("Platforms", false, list)
}

// login renders whether a platform may log in, and until when its replaced password stays valid. It
// shows no secret.
func (v *visit) login(p platforms.Platform) g.Node {
	if !p.Removed.IsZero() {
		return g.Group{dot("off", "Removed"), g.Text(" "), ago(p.Removed, v.now)}
	}
	for _, old := range p.Previous {
		if v.now.Before(old.Until) {
			return g.Group{dot("busy", "Rotating"), g.Text(" the old password ends "), ago(old.Until, v.now)}
		}
	}
	return dot("good", "May log in")
}
