// Package memory is a store that forgets everything when the process ends: for
// tests and benchmarks that need thousands of fresh stores, or no disk.
package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// A Store keeps its records in a map.
type Store struct {
	mu      sync.Mutex
	records map[store.Key]store.Record
}

// New makes an empty one.
func New() *Store { return &Store{records: map[store.Key]store.Record{}} }

// Clone makes another store of the same records.
func (m *Store) Clone() *Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Store{records: maps.Clone(m.records)}
}

const pageSize = 50

// Get implements store.Store.
func (m *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if err := cmp.Or(ctx.Err(), store.CheckKey(key)); err != nil {
		return store.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[key]
	if !ok {
		return store.Record{}, store.ErrNotFound
	}
	r.Body = slices.Clone(r.Body)
	return r, nil
}

// List implements store.Store.
func (m *Store) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	if err := cmp.Or(ctx.Err(), store.CheckList(partition, prefix, after, limit)); err != nil {
		return store.Page{}, err
	}
	return m.page(after, min(cmp.Or(limit, pageSize), pageSize), func(r store.Record) (string, bool) {
		return r.Sort, r.Partition == partition && strings.HasPrefix(r.Sort, prefix)
	}), nil
}

// Scan implements store.Store.
func (m *Store) Scan(ctx context.Context, cursor string) (store.Page, error) {
	if err := ctx.Err(); err != nil {
		return store.Page{}, err
	}
	return m.opaque(cursor, func(r store.Record) (string, bool) { return fmt.Sprintf("%q %q", r.Partition, r.Sort), true })
}

// Due implements store.Store.
func (m *Store) Due(ctx context.Context, before time.Time, cursor string) (store.Page, error) {
	if err := ctx.Err(); err != nil {
		return store.Page{}, err
	}
	return m.opaque(cursor, func(r store.Record) (string, bool) {
		// From a year before which nothing is due: the number has no sign.
		at := r.Due.UnixMilli() - time.Time{}.UnixMilli()
		return fmt.Sprintf("%020d %q %q", at, r.Partition, r.Sort), !r.Due.IsZero() && !r.Due.After(before)
	})
}

// opaque is page with a cursor that shows no place.
func (m *Store) opaque(cursor string, place func(store.Record) (string, bool)) (store.Page, error) {
	after, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return store.Page{}, store.Invalidf("no page gave this cursor")
	}
	page := m.page(string(after), pageSize, place)
	page.Next = base64.RawURLEncoding.EncodeToString([]byte(page.Next))
	return page, nil
}

// page gives the records that have a place behind this one, in order, and the
// last one's place if there are more.
func (m *Store) page(after string, limit int, place func(store.Record) (string, bool)) (page store.Page) {
	type placed struct {
		place  string
		record store.Record
	}
	var found []placed
	m.mu.Lock()
	for _, r := range m.records {
		if at, ok := place(r); ok && (after == "" || at > after) {
			found = append(found, placed{at, r})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(found, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].place
	}
	for _, f := range found {
		f.record.Body = slices.Clone(f.record.Body)
		page.Records = append(page.Records, f.record)
	}
	return page
}

// Commit implements store.Store.
func (m *Store) Commit(ctx context.Context, changes ...store.Change) error {
	if err := cmp.Or(ctx.Err(), store.CheckChanges(changes)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if m.records[c.Record.Key].Version != c.Record.Version {
			return store.ErrConflict
		}
	}
	for _, c := range changes {
		switch r := c.Record; c.Action {
		case store.ActionPut:
			r.Version++
			r.Body = slices.Clone(r.Body)
			r.Due, r.Expires = r.Due.UTC().Truncate(time.Millisecond), r.Expires.UTC().Truncate(time.Second)
			m.records[r.Key] = r
		case store.ActionDelete:
			delete(m.records, r.Key)
		}
	}
	return nil
}
