package providertest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// A watch checks at every call of the suite what holds for all calls: inputs
// are left alone, secrets are not told, answers are well formed.
type watch struct {
	t       testing.TB
	records *records
	mu      sync.Mutex
	secrets map[string]bool
}

// over puts the watch around p, which is told what is on record, and whose
// answers are recorded.
func (w *watch) over(p provider.Provider) provider.Provider { return &watched{w: w, p: p} }

// losing is p whose answers are lost before they are recorded, if lost says so
// once they were given.
func (w *watch) losing(p provider.Provider, lost func() bool) provider.Provider {
	return &watched{w: w, p: p, lost: lost}
}

type watched struct {
	w    *watch
	p    provider.Provider
	lost func() bool
}

func (p *watched) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, p.p.Provision, in, operation.Provision)
}

func (p *watched) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, p.p.Update, in, operation.Update)
}

func (p *watched) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, p.p.Deprovision, in, operation.Deprovision)
}

func (p *watched) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	p.w.learn(forms(b.Secret)...)
	return p.binding(ctx, p.p.Bind, b, operation.Bind)
}

func (p *watched) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.binding(ctx, p.p.Unbind, b, operation.Unbind)
}

func (p *watched) instance(
	ctx context.Context, verb func(context.Context, provider.Instance) (provider.Status, error), in provider.Instance, kind operation.Kind,
) (provider.Status, error) {
	p.w.t.Helper()
	in = p.w.records.instance(in)
	st, err := watchCall(p.w, proven(p.p, in, verb), ctx, in, kind)
	p.record(provider.TagsOf(in), in, in.State, st, err)
	return st, err
}

func (p *watched) binding(
	ctx context.Context, verb func(context.Context, provider.Binding) (provider.Status, error), b provider.Binding, kind operation.Kind,
) (provider.Status, error) {
	p.w.t.Helper()
	b = p.w.records.binding(b)
	st, err := watchCall(p.w, proven(p.p, b.Instance, verb), ctx, b, kind)
	p.record(provider.BindingTagsOf(b), b.Instance, b.State, st, err)
	return st, err
}

// proven is a verb whose target is proven first, as a worker does it.
func proven[T any](
	p provider.Provider, in provider.Instance, verb func(context.Context, T) (provider.Status, error),
) func(context.Context, T) (provider.Status, error) {
	return func(ctx context.Context, arg T) (provider.Status, error) {
		switch learnt, err := wired.Of(p).Prove(ctx, in); {
		case err != nil:
			return provider.Status{}, err
		case learnt != nil:
			return *learnt, nil
		}
		return verb(ctx, arg)
	}
}

// record keeps what a step answered, unless the answer is lost.
func (p *watched) record(tags provider.Tags, in provider.Instance, given provider.State, st provider.Status, err error) {
	p.w.t.Helper()
	f, failed := errors.AsType[*provider.Failure](err)
	if (p.lost != nil && p.lost()) || (err != nil && !failed) {
		return
	}
	kept := p.w.records.put(tags, in.Operation.ID, given, in.Target, st, f)
	if len(kept.Data) > limits.State {
		p.w.t.Errorf("%s: a state of %d bytes, want at most %d", in.Operation.Kind, len(kept.Data), limits.State)
	}
	if err != nil || st.Grant == nil {
		return
	}
	for _, password := range passwords(st.Grant.Credentials) {
		for _, form := range forms([]byte(password)) {
			if strings.Contains(string(kept.Data), form) {
				p.w.t.Error("bound, and the state still holds a secret of the grant")
			}
		}
	}
}

// forms are how a secret may be written.
func forms(secret []byte) []string {
	return []string{
		string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret),
	}
}

// bound is a step of verb with its argument.
func bound[T any](verb func(context.Context, T) (provider.Status, error), arg T) Step {
	return func(ctx context.Context) (provider.Status, error) { return verb(ctx, arg) }
}

func watchCall[T any](
	w *watch, verb func(context.Context, T) (provider.Status, error), ctx context.Context, arg T, kind operation.Kind,
) (provider.Status, error) {
	w.t.Helper()
	before := snapshot(arg)
	st, err := verb(ctx, arg)
	if after := snapshot(arg); after != before {
		w.t.Errorf("%s changed its input", kind)
	}
	if err != nil {
		w.safe(fmt.Sprintf("the error of %s", kind), fmt.Sprintf("%v %+v", err, err))
		if f, ok := errors.AsType[*provider.Failure](err); ok && strings.TrimSpace(f.Message) == "" {
			w.t.Errorf("%s failed without a message", kind)
		}
		return st, err
	}
	if st.Percent < 0 || st.Percent > 100 || st.After < 0 {
		w.t.Errorf("%s: percent %d or pause %v out of range", kind, st.Percent, st.After)
	}
	if given, want := st.Grant != nil, st.Done && kind == operation.Bind; given != want {
		w.t.Errorf("%s (done: %v) has a grant: %v, want %v", kind, st.Done, given, want)
	}
	if st.Grant != nil {
		w.learn(passwords(st.Grant.Credentials)...)
	}
	w.safe(fmt.Sprintf("the description of %s", kind), st.Description)
	return st, nil
}

// learn takes secrets that are to be seen nowhere.
func (w *watch) learn(secrets ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secrets {
		w.secrets[s] = true
	}
}

// safe requires that no secret is in text.
func (w *watch) safe(where, text string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(text, canary) {
		w.t.Errorf("%s tells a parameter", where)
	}
	for s := range w.secrets {
		if s != "" && strings.Contains(text, s) {
			w.t.Errorf("%s tells a secret", where)
			return
		}
	}
}

// passwords are the values of credentials that must be secret by their names.
func passwords(credentials map[string]any) []string {
	var found []string
	for name, v := range credentials {
		s, ok := v.(string)
		name = strings.ToLower(name)
		if ok && (strings.Contains(name, "password") || strings.Contains(name, "secret")) {
			found = append(found, s)
		}
	}
	return found
}

func snapshot(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
