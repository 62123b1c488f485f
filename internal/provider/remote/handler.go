package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// Open returns a provider that reaches its targets with reach, the result of the client's LookUp;
// nil if the provider needs none. It is called for each call. It may return the same provider
// again, unless the provider has a Close, which is called after each call. Its error is logged: it
// must not repeat anything of reach.
type Open func(reach json.RawMessage) (wired.Provider, error)

// A Handler serves calls of clients. It is a lambda.Handler.
type Handler struct {
	providers map[string]Open
	log       *slog.Logger
}

// NewHandler returns a handler for providers, by their names.
func NewHandler(providers map[string]Open, log *slog.Logger) *Handler {
	return &Handler{providers: providers, log: log}
}

// Invoke serves one call. It answers faults, too, and never returns an error, since Lambda would
// log its text. The answer holds secrets.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	out, err := encode(h.serve(logs.Begin(ctx), payload))
	if err != nil { // a provider returned something that JSON cannot express
		h.log.ErrorContext(ctx, "an answer cannot be encoded", "error", fmt.Sprintf("%T", err))
		out, err = encode(answer{Version: version, Fault: &fault{What: "its answer cannot be encoded"}})
	}
	return out, err
}

func (h *Handler) serve(ctx context.Context, payload []byte) (a answer) {
	var r request
	defer func() {
		if p := recover(); p != nil {
			_ = logs.Panicked(ctx, h.log, p, "provider", r.Provider, "verb", r.Verb) // the panic is in the log now
			a = answer{Fault: &fault{What: "it panicked: its log says where", Unanswered: true}}
		}
		a.Version = version
	}()
	err := decode(payload, &r)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return h.fault(ctx, r, "the call is of another version: a deploy is under way", err)
	}
	open, ok := h.providers[r.Provider]
	if !ok {
		return h.fault(ctx, r, "it is not part of the function inside the VPC: a deploy is under way",
			errors.New("no such provider"))
	}
	if _, t, is := r.about(); is {
		logs.AddSubject(ctx, t.Platform, t.Instance, t.Binding)
	}
	if !r.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.Until)
		defer cancel()
	}
	// A call that comes too late begins nothing: its caller has given up.
	if err := ctx.Err(); err != nil {
		return h.fault(ctx, r, "the call came too late", err)
	}
	w, err := open(r.Reach)
	if err != nil {
		return h.fault(ctx, r, "its target cannot be reached as the settings say: the log of the function inside the VPC "+
			"says why", err)
	}
	if w.Close != nil {
		defer w.Close()
	}
	a, err = call(ctx, w, r)
	failure, failed := errors.AsType[*provider.Failure](err)
	switch page := a.Page; {
	case failed:
		return answer{Failure: failure}
	case err != nil:
		a = h.fault(ctx, r, "the call met a fault: the log of the function inside the VPC says which", err)
		a.Page = page
	}
	return a
}

// errLacks says that the provider inside lacks an ability of the one outside.
var errLacks = errors.New("the provider inside the VPC lacks what is asked of it")

// call proves the target of a step, and calls the provider's method for the verb. The step goes no further if
// it has just learnt its target, or if the target is another one.
func call(ctx context.Context, w wired.Provider, r request) (a answer, err error) {
	if in, _, is := r.about(); is {
		if a.Status, err = w.Prove(ctx, in); a.Status != nil || err != nil {
			return a, err
		}
	}
	if lacks(w, r.Verb) {
		return a, errLacks
	}
	var st provider.Status
	a.Status = &st
	switch r.Verb {
	case verbList:
		return paged(w.Inventory.List(ctx, r.Cursor))
	case verbProvision:
		st, err = w.Provider.Provision(ctx, *r.Instance)
	case verbUpdate:
		st, err = w.Provider.Update(ctx, *r.Instance)
	case verbDeprovision:
		st, err = w.Provider.Deprovision(ctx, *r.Instance)
	case verbBind:
		st, err = w.Provider.Bind(ctx, *r.Binding)
	case verbUnbind:
		st, err = w.Provider.Unbind(ctx, *r.Binding)
	case verbRefuses:
		if w.Refuser != nil { // a provider without a Refuser refuses nothing
			err = w.Refuser.Refuses(ctx, *r.Instance)
		}
	case verbQuarantine:
		err = w.Quarantiner.Quarantine(ctx, *r.Holding)
	case verbRelease:
		err = w.Quarantiner.Release(ctx, *r.Holding)
	case verbAdopt:
		err = w.Adopter.Adopt(ctx, *r.Holding, *r.Former)
	case verbDescribe:
		facts, err := w.Describer.Describe(ctx, *r.Instance)
		return answer{Facts: &facts}, err
	case verbSurvey:
		st.Target = &provider.Target{}
		*st.Target, a.Epoch, err = w.Reconciler.Survey(ctx, r.Epochs.Target.Name)
	case verbHoldings:
		return paged(w.Reconciler.Holdings(ctx, r.Epochs.Target.Name, r.Cursor))
	case verbAdvance:
		a.Epoch, err = w.Reconciler.Advance(ctx, r.Epochs.Target, r.Epochs.From, r.Epochs.To)
	}
	return a, err
}

// lacks reports whether the provider lacks the ability for a verb.
func lacks(w wired.Provider, verb string) bool {
	switch verb {
	case verbQuarantine, verbRelease:
		return w.Quarantiner == nil
	case verbAdopt:
		return w.Adopter == nil
	case verbDescribe:
		return w.Describer == nil
	case verbSurvey, verbHoldings, verbAdvance:
		return w.Reconciler == nil
	}
	return false
}

// paged answers with a page of the inventory.
func paged(holdings []provider.Holding, next string, err error) (answer, error) {
	return answer{Page: &page{holdings, next}}, err
}

// fault answers that a temporary error occurred. It logs the error, which the worker does not see,
// unless it is a trouble: the worker logs troubles, so that each is logged once.
func (h *Handler) fault(ctx context.Context, r request, what string, err error) answer {
	var trouble *target.Trouble
	if !errors.As(err, &trouble) {
		h.log.WarnContext(ctx, "a call met a fault and will be repeated", "provider", r.Provider, "verb", r.Verb, "error", err)
	}
	late := ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	return answer{Fault: &fault{What: what, Unanswered: late, Trouble: trouble}}
}
