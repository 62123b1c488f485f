package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
)

// leafed gives everything in pages of one record, and counts them.
type leafed struct {
	store.Store
	leaves int
	fails  error // beside the second page
}

func (l *leafed) Scan(ctx context.Context, cursor string) (store.Page, error) {
	l.leaves++
	all, err := l.Store.Scan(ctx, "")
	if err != nil || all.Next != "" {
		return store.Page{}, errors.Join(err, errors.New("there is more than this test has records"))
	}
	n := 0
	_, _ = fmt.Sscan(cursor, &n)
	page := store.Page{Records: all.Records[n : n+1]}
	if n+1 < len(all.Records) {
		page.Next = fmt.Sprint(n + 1)
	}
	if n == 1 {
		return page, l.fails
	}
	return page, nil
}

// A list is read page by page, and what is named or runs without reading all.
func TestListsAreRead(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"a", "b"} {
		s.provision(id, "sync")
	}
	if err := s.bind("a", "bound", "sync", ""); err != nil {
		t.Fatal(err)
	}
	s.stalled = true
	s.provision("slow", "async")
	l := &leafed{Store: s.store}
	s.console.Records = ledger.New(l, s.id)
	all, err := s.store.Scan(t.Context(), "")
	if err != nil || len(all.Records) < 4 {
		t.Fatal(len(all.Records), err)
	}
	list := func(q operator.Query) (names []string, faults int) {
		t.Helper()
		l.leaves = 0
		for r, err := range paging.All(t.Context(), func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
			q.After = cursor
			return s.console.List(ctx, q)
		}) {
			if err != nil {
				faults++
				continue
			}
			names = append(names, r.Instance+r.Binding)
		}
		slices.Sort(names)
		return names, faults
	}
	slow, _, err := s.console.List(t.Context(), operator.Query{What: operator.Operations, State: "running"})
	if err != nil || len(slow) != 1 {
		t.Fatal(slow, err)
	}
	for name, tc := range map[string]struct {
		reason string
		query  operator.Query
		want   []string
		leaves int
	}{
		"Instances": {"instances stand in the directory", operator.Query{What: operator.Instances}, []string{"a", "b", "slow"}, 0},
		"Bindings": {"each page is read once, and may be empty", operator.Query{What: operator.Bindings}, []string{"abound"},
			len(all.Records)},
		"Running": {"what runs stands in an index", operator.Query{What: operator.Instances, State: "running"}, []string{"slow"}, 0},
		"Token":   {"a token names its record", operator.Query{What: operator.Operations, ID: slow[0].Operation.Token}, []string{"slow"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := list(tc.query)
			if d := cmp.Diff(tc.want, got); d != "" || l.leaves != tc.leaves || faults != 0 {
				t.Errorf("%s: %d pages, want %d; %d faults (-want +got):\n%s", tc.reason, l.leaves, tc.leaves, faults, d)
			}
		})
	}
	l.fails = errors.New("a record is damaged")
	if got, faults := list(operator.Query{What: operator.Bindings}); len(got) != 1 || faults != 1 {
		t.Errorf("beside a damaged record: %q, %d faults", got, faults)
	}
}
