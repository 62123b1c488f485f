package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/lifecycle"
)

// An act is what a person may do on a page, with the words that are shown before. Only acts of operators have the members
// from did on.
type act struct {
	name, link, title, does, hurts string
	button                         string // the link unless it is given
	did                            string
	command                        string // the CLI command that does the same, if it is not called by the name
	flags                          string // flags that the CLI command needs after the token
}

// The acts of operators. actsOn says which of them a record allows, and carryOut does them.
var (
	actRetry = act{
		name: "retry", link: "Retry", title: "Start this operation again?", button: "Start it again",
		does: "Another attempt begins at once. The one before ends at its next step, and what was made stays.",
		hurts: "If a call to the provider is under way, the new attempt waits until that has ended, or for two minutes. " +
			"It does not help if a person has to repair something first.",
		did: "The operation was started again",
	}
	actRemove = act{
		name: "remove", command: "retry", link: "Delete", title: "Delete what the failed operation left?", button: "Delete it",
		does: "The broker deletes at once everything that was made so far. Otherwise, it does so after eight days.",
		hurts: "Everything in the instance is gone for good, unless its plan keeps it. " +
			"Until the platform deletes a failed creation, it is told that the creation has failed.",
		did: "Its deletion has begun",
	}
	actSettle = act{
		name: "settle", flags: " --failed MESSAGE --yes",
		link: "End", title: "End this operation as failed?", button: "End it as failed",
		does: "The operation fails now, for good, and the platform's user reads the message.",
		hurts: "A creation that ends this way is removed with everything it has made. After an update or a deletion, the " +
			"instance may be half changed.",
		did: "The operation has failed",
	}
	actRelease = act{
		name: "release", link: "Release", title: "Put this thing into use again?", button: "Release it",
		does:  "It can be used again as before, and is left alone from then on.",
		hurts: "No record explains it, so no platform deletes it: it stays, and costs money, until you delete it.",
		did:   "Its release has begun",
	}
	actDiscard = act{
		name: "discard", link: "Delete", title: "Delete this thing for good?", button: "Delete it for good",
		does:  "Its deletion begins at once, and does not wait for the end of its quarantine.",
		hurts: "All data in it is lost. Nothing gives it back. Release it instead if anybody may need it.",
		did:   "Its deletion has begun",
	}
)

// settled is the message for a platform's user unless the operator writes another one.
const settled = "The operator of the broker has ended this operation."

// actsOn returns the acts that a record allows.
func (v *visit) actsOn(r lifecycle.Record) []act {
	switch {
	case r.OfOrphan() && r.IsReleased():
		return []act{actDiscard}
	case r.OfOrphan() && r.InQuarantine():
		return []act{actRelease, actDiscard}
	case r.InProgress():
		return []act{actRetry, actSettle}
	case failedForGood(r):
		return []act{actRemove}
	}
	return nil
}

// actLinks renders links to the pages that ask for confirmation.
func (v *visit) actLinks(r lifecycle.Record) g.Node {
	return h.Span(h.Class("acts"), g.Map(v.actsOn(r), func(a act) g.Node {
		return h.A(h.Href("act?"+url.Values{"do": {a.name}, "token": {r.Token().String()}}.Encode()),
			h.Aria("label", a.link+" "+short(first(nameOf(r), r.Key.Instance))), g.Text(a.link))
	}))
}

// withActs returns the heads of a table, with a last column for the acts if the session may act.
func (v *visit) withActs(heads ...string) []string {
	if v.acts {
		heads = append(heads, "Acts")
	}
	return heads
}

// nameOf returns the name of a thing in quarantine; it is empty for any other record.
func nameOf(r lifecycle.Record) string {
	if r.Kept == nil {
		return ""
	}
	return r.Kept.Name
}

// home returns the page on which a record is shown.
func home(r lifecycle.Record) string {
	if r.OfOrphan() {
		return "quarantine"
	}
	return to(r.Key)
}

// asked finds the act that a request names, and its record. If the act is not possible, it returns
// a page that says so.
func (v *visit) asked() (a act, r lifecycle.Record, page g.Node) {
	if !v.acts {
		return a, r, v.instead(http.StatusForbidden, "This session only reads",
			"Open the console by the link that `longshore console --act` prints, and do it there.")
	}
	token, err := lifecycle.ParseToken(v.FormValue("token"))
	if err != nil {
		return a, r, v.instead(http.StatusNotFound, "There is no such operation", "Open it from one of the lists.")
	}
	if r, err = v.Records.Record(v.Context(), token.Key, v.now); err != nil {
		v.note(err)
		return a, r, v.instead(http.StatusServiceUnavailable, "Nothing was done", "The record of the operation cannot be read. "+
			"Try again in a minute.")
	}
	for _, a := range v.actsOn(r) {
		if a.name == v.FormValue("do") && r.Operation.ID == token.Operation {
			return a, r, nil
		}
	}
	return a, r, v.instead(http.StatusConflict, "Nothing was done", "It has changed meanwhile, so this can no longer be "+
		"done. Look at it again.")
}

// ask shows the page that asks for confirmation of an act.
func (v *visit) ask() g.Node {
	a, r, page := v.asked()
	if page != nil {
		return page
	}
	return v.page(a.title, false,
		facts(fact{"Instance", v.named(r)}, fact{"Thing", text(nameOf(r))}, fact{"Binding", text(r.Key.Binding)},
			fact{"Plan", text(v.planOf(r))}, fact{"Operation", v.doing(r)}, fact{"Begun", ago(r.Operation.Started, v.now)},
			fact{"Why", text(clipped(why(r, v.now)))}),
		a.question("act", g.Group{
			hidden("do", a.name), hidden("token", r.Token().String()), hidden("attempt", strconv.Itoa(r.Operation.Attempt)),
			g.If(a == actSettle, h.Label(g.Text("Message for the platform's user"),
				h.Input(h.Type("text"), h.Name("message"), h.Value(settled), h.MaxLength("300")))),
		}, link(home(r), "Cancel")))
}

// carryOut does an act to the record. Retry and removal are both a retry to package acts, which deletes what has failed.
func (v *visit) carryOut(a act, r lifecycle.Record) (acts.Done, error) {
	switch a {
	case actSettle:
		message := first(strings.TrimSpace(v.PostFormValue("message")), settled)
		return v.Acts.Settle(v.Context(), r.Token().String(), clipped(message))
	case actRelease:
		return v.Acts.Release(v.Context(), r.Key)
	case actDiscard:
		return v.Acts.Discard(v.Context(), r.Key)
	}
	attempt, err := strconv.Atoi(v.PostFormValue("attempt"))
	if err != nil || attempt < 1 {
		return acts.Done{}, acts.Refuse("the form is incomplete: open its page again")
	}
	seen := *r.Operation // in the phase in which the act may be offered
	seen.Attempt = attempt
	return v.Acts.Retry(v.Context(), r.Token().String(), &seen)
}

// act carries out the act that its page has asked about.
func (v *visit) act() g.Node {
	a, r, page := v.asked()
	if page != nil {
		return page
	}
	back := h.P(h.Class("pager"), link(home(r), "Look at it"), link("overview", "Overview"))
	done, err := v.carryOut(a, r)
	if refusal, refused := errors.AsType[*acts.Refusal](err); refused {
		why := strings.ToUpper(refusal.Message[:1]) + refusal.Message[1:] + "."
		return v.instead(http.StatusConflict, "Nothing was done", why, back)
	}
	if err != nil {
		v.note(err)
		return v.instead(http.StatusServiceUnavailable, "It is not known whether it was done",
			"The broker could not record it. Look at it again: doing it twice does no harm.", back)
	}
	return v.page(a.did, false, g.If(done.Note != "", h.P(g.Text("It "+done.Note+"."))), back)
}
