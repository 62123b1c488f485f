package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

const watchEvery = 2 * time.Second

// watch shows running operations until none is left. It finds them by an index, and finds those
// that have ended by their tokens.
func watch(ctx context.Context, link operator.Link, q operator.Query, out io.Writer) error {
	q.State = "running"
	last := map[string]string{} // the last line of each running operation, by token
	tell := func(r operator.Row) {
		if line := progressLine(r, time.Now()); line != last[r.Operation.Token] {
			printf(out, "%s\n", line)
			last[r.Operation.Token] = line
		}
	}
	for {
		running := map[string]bool{}
		for r, err := range operator.All(ctx, link, operator.List, q) {
			if err != nil && ctx.Err() == nil {
				return err
			}
			if err == nil {
				running[r.Operation.Token] = true
				tell(r)
			}
		}
		for token := range last {
			if running[token] || ctx.Err() != nil {
				continue
			}
			settled, err := operator.List.Ask(ctx, link, operator.Query{What: operator.Operations, ID: token})
			if err != nil {
				return err
			}
			for _, r := range settled.Items {
				tell(r)
			}
			delete(last, token)
		}
		if len(running) == 0 && ctx.Err() == nil {
			printf(out, "Nothing runs.\n")
			return nil
		}
		if waiting.For(ctx, watchEvery) != nil {
			return nil
		}
	}
}

const barWidth = 20

// bar draws a progress bar.
func bar(percent int) string {
	full := percent * barWidth / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}

// progressLine returns a line with a progress bar. The percentage is the provider's, or the share
// of the expected time that has passed.
func progressLine(r operator.Row, now time.Time) string {
	op := r.Operation
	percent := op.Percent
	if total := op.Expected.Sub(op.Started); percent == 0 && !op.Expected.IsZero() && total > 0 {
		percent = int(max(0, min(99, 100*now.Sub(op.Started)/total))) // the broker's clock may be ahead of this one
	}
	name := r.Instance
	if r.Binding != "" {
		name += "/" + r.Binding
	}
	if op.Phase != string(lifecycle.InProgress) {
		percent = 100
	}
	return strings.TrimSpace(oneLine(fmt.Sprintf("%s %3d %%  %s of %s: %s  %s", bar(percent), percent, op.Kind, name,
		op.Phase, op.Description)))
}
