// Package logs says in each line of a log what it is about: the request's
// identity, the platform, the instance, the binding and the operation's token,
// which whoever works on a request or a step adds once to its context. What else
// a line says is left to who writes it.
package logs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// Names of what lines are about.
const (
	RequestIdentity = "request_identity"
	Platform        = "platform"
	Instance        = "instance"
	Binding         = "binding"
	Operation       = "operation"
)

// about is a context that knows what its lines are about. It is shared by all who work
// on one thing, also by who began it: the line that ends a request names the operation
// that was begun deep inside.
type about struct {
	context.Context
	mu    sync.Mutex
	attrs [5]slog.Attr // one for each name
	n     int
}

type key struct{}

// Value implements context.Context: of its own key it is the about itself.
func (a *about) Value(asked any) any {
	if asked == (key{}) {
		return a
	}
	return a.Context.Value(asked)
}

// Begin gives a context to whose lines can be added what they are about.
func Begin(ctx context.Context) context.Context { return &about{Context: ctx} }

// AddRequest says which request the context's lines are about, from now on;
// empty says nothing. Without Begin, it does nothing.
func AddRequest(ctx context.Context, identity string) { addText(ctx, RequestIdentity, identity) }

// AddSubject says whose instance or binding the context's lines are about, by
// ids, from now on; what is empty says nothing. Without Begin, it does nothing.
func AddSubject(ctx context.Context, platform, instance, binding string) {
	addText(ctx, Platform, platform)
	addText(ctx, Instance, instance)
	addText(ctx, Binding, binding)
}

// AddOperation says which operation the context's lines are about, from now on, by its
// token. Without Begin, it does nothing.
func AddOperation(ctx context.Context, token fmt.Stringer) { addText(ctx, Operation, token.String()) }

// addText replaces what was said under the name.
func addText(ctx context.Context, name, text string) {
	a, ok := ctx.Value(key{}).(*about)
	if !ok || text == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := 0
	for at < a.n && a.attrs[at].Key != name {
		at++
	}
	a.attrs[at] = slog.String(name, text)
	a.n = max(a.n, at+1)
}

// A Handler adds to each line what its context is about.
type Handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	if a, ok := ctx.Value(key{}).(*about); ok {
		a.mu.Lock()
		attrs, n := a.attrs, a.n
		a.mu.Unlock()
		r = r.Clone()
		r.AddAttrs(attrs[:n]...)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }
