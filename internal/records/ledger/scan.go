package ledger

import (
	"context"
	"errors"
	"iter"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// Everything is the lifecycle's part of a table.
type Everything struct {
	Records []lifecycle.Record // the records of instances and bindings
	Past    []lifecycle.PastOperation
	Entries []lifecycle.Entry // entries of histories
}

// ScanPage reads one page of everything; all pages cost as much as reading the whole table: it is for
// operators. Cursor is empty for the first page, then the next of the page before. It leaves out what cannot
// be read, and reports it in the error beside the rest. Entries of histories, of which there are many, are
// read only if the caller wants histories.
func (l *Ledger) ScanPage(ctx context.Context, cursor string, histories bool) (e Everything, next string, _ error) {
	page, err := l.store.Scan(ctx, cursor)
	faults := []error{err}
	for _, r := range page.Records {
		if histories || !isEntry(r) {
			faults = append(faults, e.add(r))
		}
	}
	return e, page.Next, errors.Join(faults...)
}

// Scan yields all records of instances and bindings, page by page; see ScanPage.
func (l *Ledger) Scan(ctx context.Context) iter.Seq2[lifecycle.Record, error] {
	return paging.All(ctx, func(ctx context.Context, cursor string) ([]lifecycle.Record, string, error) {
		page, next, err := l.ScanPage(ctx, cursor, false)
		return page.Records, next, err
	})
}

// Decode decodes one record of a scan of the store. At most one of the lists gets an element.
func Decode(r store.Record) (e Everything, err error) {
	err = e.add(r)
	return e, err
}

func (e *Everything) add(r store.Record) error {
	switch {
	case isRecord(r):
		return add(&e.Records, r)
	case r.Sort == sortOperation:
		return add(&e.Past, r)
	case isEntry(r):
		return add(&e.Entries, r)
	}
	return nil
}
