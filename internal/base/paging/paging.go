// Package paging walks listings that are read page by page.
package paging

import (
	"context"
	"iter"
)

// All reads a listing to its end and yields its items one by one. Read gets an empty cursor for
// the first page, then the next of the page before; an empty next is the end. Read may return
// an error beside a page: All yields the error after the page's items, and goes on with the
// next page, if there is one and the loop goes on. If the context has ended, All stops between
// two pages and yields the context's error.
func All[T any](ctx context.Context, read func(ctx context.Context, cursor string) (page []T, next string,
	err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for cursor := ""; ; {
			page, next, err := read(ctx, cursor)
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil && !yield(none, err) {
				return
			}
			// A page that failed and names itself as the next one would be read again without end.
			if next == "" || err != nil && next == cursor {
				return
			}
			if cursor = next; ctx.Err() != nil {
				yield(none, ctx.Err())
				return
			}
		}
	}
}
