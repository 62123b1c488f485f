package paging_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/paging"
)

// a page as a listing gives it.
type page struct {
	items []int
	next  string
	err   error
}

var errDamaged = errors.New("a record is damaged")

func TestAll(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		listing map[string]page
		stop    int // after so many items; 0 never
		onError bool
		want    []int
		read    int
		faults  int
	}{
		"Whole": {"pages follow on one another", map[string]page{"": {[]int{1, 2}, "a", nil}, "a": {[]int{3}, "", nil}}, 0, false,
			[]int{1, 2, 3}, 2, 0},
		"Nothing": {"an empty listing ends at once", map[string]page{"": {}}, 0, false, nil, 1, 0},
		"EmptyPage": {"an empty page is no end", map[string]page{"": {nil, "a", nil}, "a": {[]int{1}, "", nil}}, 0, false,
			[]int{1}, 2, 0},
		"Stopped": {"who has seen enough reads no further page", map[string]page{"": {[]int{1, 2}, "a", nil}}, 2, false,
			[]int{1, 2}, 1, 0},
		"Failed": {"a fault ends what has no next page", map[string]page{"": {nil, "", errDamaged}}, 0, false, nil, 1, 1},
		"Damaged": {"what can be read is given beside the fault, and the rest after it",
			map[string]page{"": {[]int{1}, "a", errDamaged}, "a": {[]int{2}, "", nil}}, 0, false, []int{1, 2}, 2, 1},
		"EndsAtFault": {"who stops at a fault reads no further page", map[string]page{"": {[]int{1}, "a", errDamaged}}, 0, true,
			[]int{1}, 1, 1},
		"FailsForEver": {"a page that names itself is not read for ever",
			map[string]page{"": {nil, "a", nil}, "a": {nil, "a", errDamaged}}, 0,
			false, nil, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			read, faults := 0, 0
			for item, err := range paging.All(t.Context(), func(_ context.Context, cursor string) ([]int, string, error) {
				read++
				p := tc.listing[cursor]
				return p.items, p.next, p.err
			}) {
				if err != nil {
					if faults++; tc.onError {
						break
					}
					continue
				}
				if got = append(got, item); len(got) == tc.stop {
					break
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" || read != tc.read || faults != tc.faults {
				t.Errorf("%s: %d pages, want %d; %d faults, want %d; items -want +got:\n%s", tc.reason, read, tc.read,
					faults, tc.faults, d)
			}
		})
	}
}

func TestAnEndedContextEndsAWalk(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	var last error
	for _, err := range paging.All(ctx, func(context.Context, string) ([]int, string, error) {
		read++
		cancel()
		return []int{1}, "more", nil
	}) {
		last = err
	}
	if read != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d pages were read, and the walk ended with %v", read, last)
	}
}
