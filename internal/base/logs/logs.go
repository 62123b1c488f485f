// Package logs adds to each line of a log its subject: the request's identity, the platform,
// the instance, the binding and the operation's token. Code that works on a request or a step
// adds them once, to its context.
package logs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// The names of a line's subjects.
const (
	RequestIdentity = "request_identity"
	Platform        = "platform"
	Instance        = "instance"
	Binding         = "binding"
	Operation       = "operation"
)

// about is a context that knows the subjects of its lines. All code that works on a request
// shares it, including the code that began the request, whose last line can so name an
// operation that was begun deep inside.
type about struct {
	context.Context
	mu    sync.Mutex
	attrs [5]slog.Attr // one for each name
	n     int
}

type key struct{}

// Value implements context.Context: the value of its own key is the about itself.
func (a *about) Value(asked any) any {
	if asked == (key{}) {
		return a
	}
	return a.Context.Value(asked)
}

// Begin returns a context to whose lines subjects can be added.
func Begin(ctx context.Context) context.Context { return &about{Context: ctx} }

// AddRequest adds the request to the context's later lines, unless it is empty. Without Begin, it does nothing.
func AddRequest(ctx context.Context, identity string) { addText(ctx, RequestIdentity, identity) }

// AddSubject adds the ids of platform, instance and binding to the context's later lines,
// except empty ones. Without Begin, it does nothing.
func AddSubject(ctx context.Context, platform, instance, binding string) {
	addText(ctx, Platform, platform)
	addText(ctx, Instance, instance)
	addText(ctx, Binding, binding)
}

// AddOperation adds the operation's token to the context's later lines. Without Begin, it does nothing.
func AddOperation(ctx context.Context, token fmt.Stringer) { addText(ctx, Operation, token.String()) }

// addText adds a text under a name, or replaces the one that is there.
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

// A Handler adds to each line the subjects of its context.
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
