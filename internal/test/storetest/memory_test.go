package storetest_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/storetest"
)

// memory is a store for proving the suite: right by itself, wrong in one way when a mutant is named, and awkward in every way
// that the contract allows when that is lagging: the index of what is due is in shards, shows commits only bit by bit, and has
// empty pages.
type memory struct {
	mutant  string
	lags    bool
	mu      sync.Mutex
	records map[store.Key]store.Record
	index   map[store.Key]store.Record // what Due sees
	highest map[store.Key]int64
}

const lagging = "lagging"

func newMemory(mutant string) *memory {
	return &memory{mutant: mutant, lags: mutant == lagging, records: map[store.Key]store.Record{},
		index: map[store.Key]store.Record{}, highest: map[store.Key]int64{}}
}

func (m *memory) is(mutant string) bool { return m.mutant == mutant }

// harness opens the same records again.
func (m *memory) harness() *storetest.Harness {
	return &storetest.Harness{Store: m, Again: func(*testing.T) store.Store {
		if m.is("ForgetsWhenReopened") {
			return newMemory(m.mutant)
		}
		return m
	}}
}

// settle lets the index catch up, by some records at a time.
func (m *memory) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	const atOnce = 40
	n := 0
	for k, r := range m.records {
		if old, ok := m.index[k]; n < atOnce && (!ok || old.Version != r.Version) {
			m.index[k] = r
			n++
		}
	}
	for k := range m.index {
		if _, ok := m.records[k]; n < atOnce && !ok {
			delete(m.index, k)
			n++
		}
	}
}

func (m *memory) done(ctx context.Context) error {
	if m.is("IgnoresContext") {
		return nil
	}
	return ctx.Err()
}

func (m *memory) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if err := cmp.Or(m.done(ctx), store.CheckKey(key)); err != nil {
		return store.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[key]
	if !ok {
		return store.Record{}, store.ErrNotFound
	}
	return m.out(r), nil
}

// out is a record as it is handed out.
func (m *memory) out(r store.Record) store.Record {
	if !m.is("HandsOutItsBody") {
		r.Body = slices.Clone(r.Body)
	}
	return r
}

func (m *memory) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	if err := cmp.Or(m.done(ctx), store.CheckList(partition, prefix, after, limit)); err != nil {
		return store.Page{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, found := m.records[store.Key{Partition: partition, Sort: after}]; m.is("GoesOnAfterRecords") && !found {
		after = ""
	}
	order := cmp.Compare[string]
	if m.is("SortsWithoutCase") {
		order = func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
		}
	}
	return m.page(placed(m.records, func(r store.Record) (string, bool) {
		of := r.Partition == partition || m.is("ListsOtherPartitions") && strings.HasPrefix(r.Partition, partition)
		return r.Sort, of && (strings.HasPrefix(r.Sort, prefix) || m.is("IgnoresPrefix"))
	}), after, limit, order), nil
}

func (m *memory) Due(ctx context.Context, before time.Time, cursor string) (store.Page, error) {
	if err := m.done(ctx); err != nil {
		return store.Page{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	index := m.records
	if m.lags {
		index = m.index
	}
	entries := placed(index, func(r store.Record) (string, bool) {
		shard := 0
		if m.lags {
			shard = (len(r.Sort) + int(r.Sort[len(r.Sort)-1])) % 4
		}
		place := fmt.Sprintf("%d %020d %s %s", shard, r.Due.UnixMilli(), r.Partition, r.Sort)
		if m.is("DuePlaceIsTheTime") {
			place = fmt.Sprintf("%020d", r.Due.UnixMilli())
		}
		switch {
		case r.Due.IsZero() && !m.is("ListsZeroDue"), r.Due.After(before),
			(m.lags || m.is("LeavesOutWhatExpires")) && !r.Expires.IsZero() && !r.Due.Before(r.Expires),
			m.is("TakesEpochForZero") && r.Due.Unix() == 0, m.is("DueOnlyBefore") && r.Due.Equal(before):
			return "", false
		}
		return place, true
	})
	if m.is("ListsStaleDue") {
		entries = append(entries, placed(m.index, func(r store.Record) (string, bool) {
			now, ok := m.records[r.Key]
			return "stale " + r.Sort, !ok || !now.Due.Equal(r.Due)
		})...)
	}
	return m.opaque(entries, cursor)
}

func (m *memory) Scan(ctx context.Context, cursor string) (store.Page, error) {
	if err := m.done(ctx); err != nil {
		return store.Page{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	one := ""
	return m.opaque(placed(m.records, func(r store.Record) (string, bool) {
		one = cmp.Or(one, r.Partition)
		return fmt.Sprintf("%q %q", r.Partition, r.Sort), one == r.Partition || !m.is("ScansOnePartition")
	}), cursor)
}

type entry struct {
	place  string
	record store.Record
}

// placed are the records that have a place in a listing.
func placed(records map[store.Key]store.Record, place func(store.Record) (string, bool)) (entries []entry) {
	for _, r := range records {
		if at, ok := place(r); ok {
			entries = append(entries, entry{at, r})
		}
	}
	return entries
}

// opaque is page with a cursor that shows no place.
func (m *memory) opaque(entries []entry, cursor string) (store.Page, error) {
	after, err := base64.StdEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return store.Page{}, store.ErrInvalid
	}
	page := m.page(entries, string(after), 0, cmp.Compare[string])
	page.Next = base64.StdEncoding.EncodeToString([]byte(page.Next))
	return page, nil
}

// page is the part of the entries that follows on the place.
func (m *memory) page(entries []entry, after string, limit int, order func(a, b string) int) (page store.Page) {
	slices.SortFunc(entries, func(a, b entry) int { return order(a.place, b.place) })
	size := 30
	if m.lags {
		size = 3
	}
	if limit > 0 && !m.is("IgnoresLimit") {
		size = min(size, limit)
	}
	for i, e := range entries {
		if after != "" && order(e.place, after) <= 0 {
			continue
		}
		if len(page.Records) == size {
			if page.Next = entries[i-1].place; m.is("SkipsAtPageEnd") {
				page.Next = e.place
			}
			return page
		}
		page.Records = append(page.Records, m.out(e.record))
	}
	if m.lags && len(page.Records) > 0 {
		page.Next = entries[len(entries)-1].place // an empty page ends the listing
	}
	return page
}

func (m *memory) Commit(ctx context.Context, changes ...store.Change) error {
	if err := cmp.Or(m.done(ctx), m.check(changes)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range changes {
		switch {
		case m.is("IgnoresChecks") && c.Action == store.ActionCheck:
		case m.is("IgnoresVersions"):
		case m.is("OnlyChecksExistence") && (c.Record.Version == 0) == (m.records[c.Record.Key].Version == 0):
		case m.records[c.Record.Key].Version != c.Record.Version:
			if m.is("AppliesHalf") {
				m.apply(changes[:i])
			}
			return store.ErrConflict
		}
	}
	if m.is("ChecksTooEarly") {
		m.mu.Unlock()
		for range 1000 { // others check, too, before this one applies
			runtime.Gosched()
		}
		m.mu.Lock()
	}
	m.apply(changes)
	return nil
}

func (m *memory) apply(changes []store.Change) {
	for _, c := range changes {
		r := c.Record
		switch c.Action {
		case store.ActionCheck:
			continue
		case store.ActionDelete:
			if !m.lags && !m.is("ListsStaleDue") {
				delete(m.index, r.Key)
			}
			delete(m.records, r.Key)
			continue
		}
		r.Version = m.records[r.Key].Version + 1
		if m.is("VersionsNeverRestart") {
			r.Version = m.highest[r.Key] + 1
		}
		m.highest[r.Key] = r.Version
		if !m.is("KeepsTheCallersBody") {
			r.Body = slices.Clone(r.Body)
		}
		if m.is("ForgetsSchema") {
			r.Schema = 0
		}
		if old, ok := m.records[r.Key]; ok && m.is("KeepsOldWriter") {
			r.Writer = old.Writer
		}
		switch {
		case m.is("RoundsTimes"):
			r.Due, r.Expires = cut(r.Due.Add(time.Millisecond/2), time.Millisecond),
				cut(r.Expires.Add(time.Second/2), time.Second)
		case !m.is("KeepsZones"):
			r.Due, r.Expires = cut(r.Due, time.Millisecond), cut(r.Expires, time.Second)
		}
		if _, ok := m.index[r.Key]; m.is("ListsStaleDue") && !ok {
			m.index[r.Key] = r
		}
		m.records[r.Key] = r
	}
}

func cut(t time.Time, precision time.Duration) time.Time { return t.UTC().Truncate(precision) }

// check is that of all stores, but for the mutants.
func (m *memory) check(changes []store.Change) error {
	changes = slices.Clone(changes)
	for i := range changes {
		r := &changes[i].Record
		switch {
		case m.is("TakesTooLittle") && len(r.Body) == store.MaxBody:
			return store.ErrInvalid
		case m.is("TakesTooMuch") && len(r.Body) == store.MaxBody+1:
			r.Body = r.Body[1:]
		}
	}
	switch {
	case m.is("TakesTooMany") && len(changes) == store.MaxChanges+1:
		changes = changes[1:]
	case m.is("TakesTwice"):
		seen := map[store.Key]bool{}
		changes = slices.DeleteFunc(changes, func(c store.Change) bool {
			defer func() { seen[c.Record.Key] = true }()
			return seen[c.Record.Key]
		})
	}
	return store.CheckChanges(changes)
}
