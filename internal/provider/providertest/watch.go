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

	"github.com/longshore/longshore/internal/provider"
)

// A watch checks at every call of the suite what holds for all calls: inputs
// are left alone, secrets are not told, answers are well formed.
type watch struct {
	t       testing.TB
	mu      sync.Mutex
	secrets map[string]bool
}

// over puts the watch around p.
func (w *watch) over(p provider.Provider) provider.Provider { return &watched{w: w, p: p} }

type watched struct {
	w *watch
	p provider.Provider
}

func (p *watched) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return watchCall(p.w, p.p.Provision, ctx, in, provider.KindProvision)
}

func (p *watched) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return watchCall(p.w, p.p.Update, ctx, in, provider.KindUpdate)
}

func (p *watched) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return watchCall(p.w, p.p.Deprovision, ctx, in, provider.KindDeprovision)
}

func (p *watched) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	p.w.learn(string(b.Secret), hex.EncodeToString(b.Secret),
		base64.StdEncoding.EncodeToString(b.Secret), base64.RawURLEncoding.EncodeToString(b.Secret))
	return watchCall(p.w, p.p.Bind, ctx, b, provider.KindBind)
}

func (p *watched) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return watchCall(p.w, p.p.Unbind, ctx, b, provider.KindUnbind)
}

// bound is a step of verb with its argument.
func bound[T any](verb func(context.Context, T) (provider.Status, error), arg T) Step {
	return func(ctx context.Context) (provider.Status, error) { return verb(ctx, arg) }
}

func watchCall[T any](w *watch, verb func(context.Context, T) (provider.Status, error), ctx context.Context, arg T, kind provider.Kind) (provider.Status, error) {
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
	if given, want := st.Grant != nil, st.Done && kind == provider.KindBind; given != want {
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
