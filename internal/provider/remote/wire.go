package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// version is the version of the messages. Raise it when a member changes its meaning. A new member
// needs no new version: a program that does not know it rejects the whole message as another
// version's.
const version = 1

// These are the verbs of requests.
const (
	verbProvision   = "provision"
	verbUpdate      = "update"
	verbDeprovision = "deprovision"
	verbRefuses     = "refuses"
	verbBind        = "bind"
	verbUnbind      = "unbind"
	verbList        = "list"
	verbQuarantine  = "quarantine"
	verbRelease     = "release"
	verbAdopt       = "adopt"
	verbSurvey      = "survey"
	verbHoldings    = "holdings"
	verbAdvance     = "advance"
	verbDescribe    = "describe"
)

// A request is one call of the function inside. It holds secrets: it is never logged or stored.
type request struct {
	Version  int    `json:"version"`
	Provider string `json:"provider"`
	Verb     string `json:"verb"`
	// Until is when the caller gives up; zero if only the function's own time limit ends the call.
	Until time.Time `json:"until,omitzero"`
	// Reach is the result of LookUp, in the provider's own form.
	Reach json.RawMessage `json:"reach,omitempty"`
	// Instance to Epochs are the arguments of the verb.
	Instance *provider.Instance `json:"instance,omitempty"`
	Binding  *provider.Binding  `json:"binding,omitempty"`
	Holding  *provider.Holding  `json:"holding,omitempty"`
	Former   *provider.Tags     `json:"former,omitempty"` // the former owner of the holding
	Cursor   string             `json:"cursor,omitempty"`
	Epochs   *epochs            `json:"epochs,omitempty"`
}

// about returns the instance that a step is about, as far as the call describes it, and the tags of the instance or
// binding; false for a call that is about no instance.
func (r request) about() (in provider.Instance, t provider.Tags, is bool) {
	switch {
	case r.Instance != nil:
		return *r.Instance, provider.TagsOf(*r.Instance), true
	case r.Binding != nil:
		return r.Binding.Instance, provider.BindingTagsOf(*r.Binding), true
	case r.Holding != nil:
		return provider.Instance{Target: r.Holding.Target}, r.Holding.Tags, true
	}
	return in, t, false
}

// targets returns the targets that the call names.
func (r request) targets() (all []provider.Target) {
	if r.Epochs != nil {
		return append(all, r.Epochs.Target)
	}
	in, _, is := r.about()
	if is {
		all = append(all, in.Target)
	}
	if in.Source != nil && in.Source.Target != in.Target {
		all = append(all, in.Source.Target)
	}
	return all
}

// epochs are the arguments of a reconciler's verbs.
type epochs struct {
	Target provider.Target `json:"target"`
	From   target.Epoch    `json:"from,omitzero"`
	To     target.Epoch    `json:"to,omitzero"`
}

// An answer has exactly one of its members besides the version and the epoch; or a page together
// with the fault that some of its targets met.
type answer struct {
	Version int               `json:"version"`
	Status  *provider.Status  `json:"status,omitempty"`
	Failure *provider.Failure `json:"failure,omitempty"`
	Page    *page             `json:"page,omitempty"`
	Facts   *provider.Facts   `json:"facts,omitempty"`
	Epoch   target.Epoch      `json:"epoch,omitzero"` // the epoch of a target, with a status
	Fault   *fault            `json:"fault,omitempty"`
}

// A page is a page of the inventory.
type page struct {
	Holdings []provider.Holding `json:"holdings"`
	Next     string             `json:"next,omitempty"`
}

// A fault is a temporary error. It describes itself in words of this package: the log of the
// function that met it has the details.
type fault struct {
	What string `json:"what"`
	// Unanswered says that a call into the network was begun, and may still take effect.
	Unanswered bool `json:"unanswered,omitempty"`
	// Trouble is a problem that an operator has to mend: the caller logs it.
	Trouble *target.Trouble `json:"trouble,omitempty"`
}

// encode returns a value as JSON, without HTML escapes in its texts.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}

// errVersion says that the other function has another version. The error is temporary, since a
// deploy replaces one function after the other.
var errVersion = errors.New("the function inside the VPC is of another version: a deploy is under way")

// decode refuses members that it does not know: without a member that another version understands,
// a call would have another meaning. Numbers keep their digits. The error repeats nothing of the
// input.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	if d.Decode(into) != nil {
		return errVersion
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errVersion
	}
	return nil
}

// check reports whether a call has the arguments of its verb.
func (r request) check() error {
	if r.Version != version {
		return errVersion
	}
	complete := false
	switch r.Verb {
	case verbProvision, verbUpdate, verbDeprovision, verbRefuses, verbDescribe:
		complete = r.Instance != nil
	case verbBind, verbUnbind:
		complete = r.Binding != nil
	case verbQuarantine, verbRelease:
		complete = r.Holding != nil
	case verbAdopt:
		complete = r.Holding != nil && r.Former != nil
	case verbSurvey, verbHoldings, verbAdvance:
		complete = r.Epochs != nil
	case verbList:
		complete = true
	}
	if !complete {
		return fmt.Errorf("verb %q is not known, or lacks what it is about", r.Verb)
	}
	return nil
}
