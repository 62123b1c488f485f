package pages

import (
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/lifecycle"
)

// instance shows the page of an instance with additions for operators: whose it is, where it is,
// and its operation.
func (v *visit) instance() g.Node {
	is, err := v.view(v.key())
	if err != nil {
		v.note(err)
		v.status = http.StatusServiceUnavailable
		return v.page("This instance cannot be read", true)
	}
	if is.State == lifecycle.Absent {
		return v.instead(http.StatusNotFound, "There is no such instance", "It was deleted, or never was.")
	}
	v.refresh(is)
	v.busy = is.busy()
	is.who = func(e lifecycle.Entry) string {
		who, _ := v.Table.Who(v.Context(), e)
		return who
	}
	return v.page(is.title(), true, h.P(stateOf(is.Record)), is.progress(), is.failure(), v.operation(is), v.whose(is),
		section("about", "About", is.about()), is.use(), is.bound(), is.happened())
}

func (v *visit) whose(is *view) g.Node {
	return section("whose", "Whose, and where", facts(
		fact{"Platform", v.platform(is.Key.Platform)},
		fact{"Organization", known(is.names.Organization, is.Attributes.OrganizationGUID)},
		fact{"Space", known(first(is.names.Space, is.names.Namespace), is.Attributes.SpaceGUID)},
		fact{"Made by", text(is.Provider)}, fact{"Target", known(is.Made.Target.Name, is.Made.Target.Identity)},
		fact{"Incarnation", known("", is.Incarnation)}))
}

// known renders a name and an id.
func known(name, id string) g.Node {
	switch {
	case id == "" || id == name:
		return text(name)
	case name == "":
		return code(id)
	}
	return g.Group{g.Text(name + " "), code(id)}
}

// platform renders a platform's name and id; only the id if the registry cannot be read.
func (v *visit) platform(id string) g.Node {
	registry, err := v.Registry(v.Context())
	v.note(err)
	for _, p := range registry.Platforms {
		if p.ID == id {
			return known(p.Name, id)
		}
	}
	return known("", id)
}

// operation renders the latest operation, and the acts that it allows.
func (v *visit) operation(is *view) g.Node {
	r, op := is.Record, is.Operation
	if op == nil {
		return nil
	}
	may := v.actsOn(r)
	next := op.Next
	if !r.InProgress() {
		next = r.Due
	}
	return section("operation", "Operation", facts(
		fact{"State", v.doing(r)}, fact{"Begun", ago(op.Started, v.now)}, fact{"Ended", ago(op.Settled, v.now)},
		fact{"Next look", ago(next, v.now)}, fact{"Attempt", g.Textf("%d", op.Attempt)},
		fact{"Faults", g.If(op.Faults > 0, g.Textf("%d in a row", op.Faults))},
		fact{"Asked by", text(is.who(lifecycle.Entry{Key: r.Key, Asker: op.Asker}))},
		fact{"Trouble", text(op.Trouble)}, fact{"Request", text(op.Asker.Request)},
		fact{"Token", code(r.Token().String())}, fact{"Act", g.If(v.acts && len(may) > 0, v.actLinks(r))}),
		g.If(!v.acts, g.Map(may, func(a act) g.Node {
			return example(a.link, "longshore "+first(a.command, a.name)+" "+r.Token().String()+a.flags)
		})))
}
