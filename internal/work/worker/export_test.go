package worker

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// Call has a worker make a call about a target, which does something and is done.
func Call(ctx context.Context, w *Worker, name string, t provider.Target, evicts bool, do func()) error {
	in := provider.Instance{Target: t}
	_, err := w.call(ctx, name, question{in, func(context.Context, wired.Provider, provider.Instance) (provider.Status, error) {
		do()
		return provider.Status{Done: true}, nil
	}, evicts})
	return err
}
