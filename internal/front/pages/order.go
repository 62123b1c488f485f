package pages

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Broker carries out what an instance's page orders: requests that its platform could make as well.
type Broker interface {
	Update(ctx context.Context, q broker.UpdateRequest) (broker.Result, error)
	Delete(ctx context.Context, q broker.DeleteRequest) (broker.Result, error)
}

// The orders are acts that the broker carries out on an instance, for a session that acts. No order touches data that
// only the platform knows. Method possible says which an instance allows, and give has the broker do them.
var (
	orderUpgrade = act{
		name: "upgrade", link: "Upgrade", title: "Upgrade this instance?",
		does: "The broker brings the instance to the version of its plan. Its parameters and its data stay.",
		hurts: "It may be unreachable meanwhile, and it cannot go back to the previous version. " +
			"Your platform may go on offering the upgrade until it sends the upgrade itself, which then changes nothing.",
	}
	orderDeletion = act{
		name: "delete", link: "Delete it again", title: "Delete this instance again?",
		does: "The broker tries once more to delete the instance, as your platform asked it to.",
		hurts: "Everything in it is gone for good, unless its plan keeps it. " +
			"It fails again if a person has to repair something first.",
	}
)

// possible returns the order that the instance allows; an empty one if it allows none.
func (v *view) possible() act {
	switch {
	case v.State == lifecycle.DeleteFailed:
		return orderDeletion
	case v.State == lifecycle.Ready && behind(v.Record, v.plan):
		return orderUpgrade
	}
	return act{}
}

// orderPath returns the path of the page that asks for confirmation of an order.
func orderPath(o act, k lifecycle.Key) string { return "order?do=" + o.name + "&" + query(k) }

// orderLink renders a link to the page that asks for confirmation; nothing for a session that may
// not act.
func (v *view) orderLink(o act) g.Node {
	if !v.acts || v.possible() != o {
		return nil
	}
	return h.Span(h.Class("acts"), g.Text(" "), link(orderPath(o, v.Key), o.link))
}

// order asks for confirmation of an order, and gives it once the form is sent. An order that is
// given twice counts once, as for a platform that repeats its request.
func (v *visit) order() {
	k := v.key()
	_, acting, err := v.roles(ScopeOf(k))
	if err != nil {
		v.fail(err)
		return
	}
	if acting == nil {
		v.show(http.StatusForbidden, message("This session only reads", "Sign on as somebody who may manage the "+
			"instance, or open its page by the link that this command prints:",
			example("Command", "longshore dashboard --act "+shell.Word(k.Instance))))
		return
	}
	is, err := v.view(k)
	if err != nil {
		v.fail(err)
		return
	}
	switch o := is.possible(); {
	case o == act{} || o.name != v.URL.Query().Get("do"):
		v.show(http.StatusConflict, message("Nothing was done", "The instance has changed meanwhile, so this can no longer be "+
			"done.", is.back()))
	case v.Method == http.MethodPost:
		v.give(o, is, acting.person)
	default:
		v.show(http.StatusOK, is.asks(o))
	}
}

// asks renders the page that asks for confirmation of an order.
func (v *view) asks(o act) g.Node {
	return layout(o.title, h.Main(h.Class("wide"), h.H1(g.Text(o.title)),
		facts(fact{"Instance", text(v.title())}, fact{"Plan", v.planFact()}, fact{"Upgrade", v.upgrade()}),
		o.question(orderPath(o, v.Key), nil, v.back())))
}

// question renders what an act does and why it may hurt, with the form that carries it out.
func (a act) question(action string, inputs, back g.Node) g.Node {
	return g.Group{
		para("does", a.does), alert("What may go wrong", a.hurts),
		h.Form(h.Class("asks"), h.Method("post"), h.Action(action), inputs,
			h.Button(h.Class("primary danger"), h.Type("submit"), g.Text(first(a.button, a.link))), back),
	}
}

// back renders a link to the page of the instance.
func (v *view) back() g.Node {
	return link(to(v.Key), "Back to the instance")
}

// here is the place that the history shows for an order given on a page.
const here = "longshore page"

// give has the broker carry out a person's order, which counts as a request of the instance's platform.
// The instance's page then shows the outcome, including the reason of a failure.
func (v *visit) give(o act, is *view, person string) {
	if v.Throttle.Take(is.Key.Platform) > 0 {
		v.show(http.StatusTooManyRequests, message("Nothing was done", "The platform of this instance sends too many "+
			"requests. Try again in a few seconds.", is.back()))
		return
	}
	by := broker.Caller{Platform: is.Key.Platform, Received: v.now, AcceptsIncomplete: true,
		Asker: lifecycle.Asker{IdentityPlatform: here}}
	if person != "" { // under the member name that Cloud Foundry uses (OID-02)
		by.Identity, _ = json.Marshal(map[string]string{"user_id": person})
	}
	var err error
	switch o {
	case orderUpgrade:
		_, err = v.Broker.Update(v.Context(), broker.UpdateRequest{Caller: by, InstanceID: is.Key.Instance,
			ServiceID: is.Attributes.ServiceID, MaintenanceVersion: &is.plan.MaintenanceInfo.Version})
	case orderDeletion:
		_, err = v.Broker.Delete(v.Context(), broker.DeleteRequest{Caller: by, InstanceID: is.Key.Instance,
			ServiceID: is.Attributes.ServiceID, PlanID: is.Attributes.PlanID})
	}
	refusal, refused := errors.AsType[*lifecycle.Refusal](err)
	switch {
	case err == nil, refused && refusal.Reason == lifecycle.OperationFailed:
		v.lead(InstancePath(is.Key))
	case refused && refusal.Reason != lifecycle.Internal:
		v.show(http.StatusConflict, message("Nothing was done", refusal.Message, is.back()))
	default:
		v.fail(err)
	}
}
