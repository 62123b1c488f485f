package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

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
	if err := decode(payload, &r); err != nil {
		return h.fault(ctx, r, "the call is of another version: a deploy is under way", err)
	}
	if err := r.check(); err != nil {
		return h.fault(ctx, r, "the call is of another version: a deploy is under way", err)
	}
	open, ok := h.providers[r.Provider]
	if !ok {
		return h.fault(ctx, r, "it is not part of the function inside the VPC: a deploy is under way",
			errors.New("no such provider"))
	}
	if in := r.subject(); in != (provider.Tags{}) {
		logs.AddSubject(ctx, in.Platform, in.Instance, in.Binding)
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
	return h.ask(ctx, w, r)
}

// errLacks says that the provider inside lacks an ability of the one outside.
var errLacks = errors.New("the provider inside the VPC lacks what is asked of it")

// ask makes the call.
func (h *Handler) ask(ctx context.Context, w wired.Provider, r request) answer {
	var out *page
	var at target.Epoch
	var facts *provider.Facts
	st, err := prove(ctx, w, r)
	switch {
	case err != nil || st.Target != nil:
	case r.Verb == verbList:
		out = &page{}
		out.Holdings, out.Next, err = w.Inventory.List(ctx, r.Cursor)
	case r.Verb == verbDescribe && w.Describer != nil:
		facts = &provider.Facts{}
		*facts, err = w.Describer.Describe(ctx, *r.Instance)
	case slices.Contains(reconciles, r.Verb) && w.Reconciler != nil:
		st, at, out, err = reconcile(ctx, w.Reconciler, r)
	default:
		st, err = step(ctx, w, r)
	}
	var failure *provider.Failure
	switch {
	case errors.As(err, &failure):
		return answer{Failure: failure}
	case err != nil:
		a := h.fault(ctx, r, "the call met a fault: the log of the function inside the VPC says which", err)
		if out != nil && (len(out.Holdings) > 0 || out.Next != "") {
			a.Page = out
		}
		return a
	case out != nil:
		return answer{Page: out}
	case facts != nil:
		return answer{Facts: facts}
	}
	return answer{Status: &st, Epoch: at}
}

// prove proves the target of a step. The step goes no further if it has just learnt its target, or
// if the target is another one.
func prove(ctx context.Context, w wired.Provider, r request) (provider.Status, error) {
	in, is := r.instance()
	if !is {
		return provider.Status{}, nil
	}
	learnt, err := w.Prove(ctx, in)
	if learnt == nil {
		learnt = &provider.Status{}
	}
	return *learnt, err
}

// step calls the provider's method for the verb of a step.
func step(ctx context.Context, w wired.Provider, r request) (st provider.Status, err error) {
	switch r.Verb {
	case verbProvision:
		return w.Provider.Provision(ctx, *r.Instance)
	case verbUpdate:
		return w.Provider.Update(ctx, *r.Instance)
	case verbDeprovision:
		return w.Provider.Deprovision(ctx, *r.Instance)
	case verbBind:
		return w.Provider.Bind(ctx, *r.Binding)
	case verbUnbind:
		return w.Provider.Unbind(ctx, *r.Binding)
	}
	switch {
	case r.Verb == verbRefuses && w.Refuser == nil:
		return st, nil // a provider without a Refuser refuses nothing
	case r.Verb == verbRefuses:
		return st, w.Refuser.Refuses(ctx, *r.Instance)
	case r.Verb == verbQuarantine && w.Quarantiner != nil:
		return st, w.Quarantiner.Quarantine(ctx, *r.Holding)
	case r.Verb == verbRelease && w.Quarantiner != nil:
		return st, w.Quarantiner.Release(ctx, *r.Holding)
	case r.Verb == verbAdopt && w.Adopter != nil:
		return st, w.Adopter.Adopt(ctx, *r.Holding, *r.Former)
	}
	return st, errLacks
}

// reconcile calls the reconciler's method for the verb. For a survey, the status has the target.
func reconcile(
	ctx context.Context, reconciler wired.Reconciler, r request,
) (st provider.Status, at target.Epoch, out *page, err error) {
	switch t := r.Epochs.Target; r.Verb {
	case verbSurvey:
		t, at, err = reconciler.Survey(ctx, t.Name)
		st.Target = &t
	case verbAdvance:
		at, err = reconciler.Advance(ctx, t, r.Epochs.From, r.Epochs.To)
	default:
		out = &page{}
		out.Holdings, out.Next, err = reconciler.Holdings(ctx, t.Name, r.Cursor)
	}
	return st, at, out, err
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

// subject returns the tags of the instance or binding that the call is about; zero for the
// inventory.
func (r request) subject() provider.Tags {
	switch {
	case r.Instance != nil:
		return provider.TagsOf(*r.Instance)
	case r.Binding != nil:
		return provider.BindingTagsOf(*r.Binding)
	case r.Holding != nil:
		return r.Holding.Tags
	}
	return provider.Tags{}
}
