package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store"
)

// Everything is what a table holds of the lifecycle.
type Everything struct {
	Instances []lifecycle.Instance
	Bindings  []lifecycle.Binding
	Past      []lifecycle.PastOperation
}

// Scan reads everything, at the price of everything: it is for operators. What
// cannot be read is left out and reported in the error beside the rest.
func (l *Ledger) Scan(ctx context.Context) (e Everything, _ error) {
	scanner, ok := l.store.(store.Scanner)
	if !ok {
		return e, fmt.Errorf("a store of type %T cannot be scanned", l.store)
	}
	var damaged []error
	for cursor := ""; ; {
		page, err := scanner.Scan(ctx, cursor)
		if err != nil {
			return e, errors.Join(append(damaged, err)...)
		}
		for _, r := range page.Records {
			damaged = append(damaged, e.add(r))
		}
		if cursor = page.Next; cursor == "" {
			return e, errors.Join(damaged...)
		}
	}
}

func (e *Everything) add(r store.Record) error {
	switch {
	case r.Sort == sortInstance:
		i := lifecycle.Instance{}
		if err := decode(r, &i); err != nil {
			return err
		}
		i.Version = r.Version
		e.Instances = append(e.Instances, i)
	case strings.HasPrefix(r.Sort, sortBinding):
		b := lifecycle.Binding{}
		if err := decode(r, &b); err != nil {
			return err
		}
		b.Version = r.Version
		e.Bindings = append(e.Bindings, b)
	case r.Sort == sortOperation:
		p := lifecycle.PastOperation{}
		if err := decode(r, &p); err != nil {
			return err
		}
		p.Version = r.Version
		e.Past = append(e.Past, p)
	}
	return nil
}
