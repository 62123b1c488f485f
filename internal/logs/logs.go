// Package logs says in each line of a log what it is about: the request's
// identity and the operation's token, which whoever works on a request or a
// step adds once to its context. What else a line says is left to who writes it.
package logs

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Names of what lines are about.
const (
	RequestIdentity = "request_identity"
	Operation       = "operation"
)

// about is shared by all who work on one thing, also by who began it: the line
// that ends a request names the operation that was begun deep inside.
type about struct {
	mu    sync.Mutex
	attrs []slog.Attr
}

type key struct{}

// Begin gives a context to whose lines can be added what they are about.
func Begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, &about{})
}

// Add says what the context's lines are about, from now on; an empty value says
// nothing, and a later one replaces an earlier one of the name. Without Begin,
// it does nothing.
func Add(ctx context.Context, name, value string) {
	a, ok := ctx.Value(key{}).(*about)
	if !ok || value == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attrs = append(slices.DeleteFunc(slices.Clone(a.attrs), func(was slog.Attr) bool { return was.Key == name }), slog.String(name, value))
}

// A Handler adds to each line what its context is about.
type Handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	if a, ok := ctx.Value(key{}).(*about); ok {
		a.mu.Lock()
		attrs := a.attrs
		a.mu.Unlock()
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }
