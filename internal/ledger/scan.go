package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/pages"
	"github.com/longshore/longshore/internal/store"
)

// Everything is what a table holds of the lifecycle.
type Everything struct {
	Records []lifecycle.Record // of instances and bindings
	Past    []lifecycle.PastOperation
}

// Scan reads everything, at the price of everything: it is for operators. What
// cannot be read is left out and reported in the error beside the rest.
func (l *Ledger) Scan(ctx context.Context) (e Everything, _ error) {
	scanner, ok := l.store.(store.Scanner)
	if !ok {
		return e, fmt.Errorf("a store of type %T cannot be scanned", l.store)
	}
	var faults []error
	for r, err := range pages.All(ctx, func(ctx context.Context, cursor string) ([]store.Record, string, error) {
		page, err := scanner.Scan(ctx, cursor)
		return page.Records, page.Next, err
	}) {
		if err == nil {
			err = e.add(r)
		}
		faults = append(faults, err)
	}
	return e, errors.Join(faults...)
}

// Decode reads one record, as a scan of the store gives it: none of the lists, or
// one, has an entry.
func Decode(r store.Record) (e Everything, err error) {
	err = e.add(r)
	return e, err
}

func (e *Everything) add(r store.Record) error {
	switch {
	case isRecord(r):
		found, err := decodeRecord(r)
		if err != nil {
			return err
		}
		e.Records = append(e.Records, found)
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
