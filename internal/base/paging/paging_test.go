package paging_test

import (
	"context"
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/test/expect"
)

// A page is as a listing gives it.
type page struct {
	items []int
	next  string
	err   error
}

var errDamaged = errors.New("a record is damaged")

func TestAll(t *testing.T) {
	type pages = map[string]page
	for reason, tc := range map[string]struct {
		listing pages
		stop    int // after so many items; 0 never
		onError bool
		want    []int
		read    int
		faults  int
	}{
		"pages follow on one another": {pages{"": {[]int{1, 2}, "a", nil}, "a": {[]int{3}, "", nil}}, 0, false,
			[]int{1, 2, 3}, 2, 0},
		"an empty listing ends at once": {pages{"": {}}, 0, false, nil, 1, 0},
		"an empty page is no end": {pages{"": {nil, "a", nil}, "a": {[]int{1}, "", nil}}, 0, false,
			[]int{1}, 2, 0},
		"who has seen enough reads no further page": {pages{"": {[]int{1, 2}, "a", nil}}, 2, false, []int{1, 2}, 1, 0},
		"a fault ends what has no next page":        {pages{"": {nil, "", errDamaged}}, 0, false, nil, 1, 1},
		"what can be read is given beside the fault, and the rest after it": {
			pages{"": {[]int{1}, "a", errDamaged}, "a": {[]int{2}, "", nil}}, 0, false, []int{1, 2}, 2, 1},
		"who stops at a fault reads no further page": {pages{"": {[]int{1}, "a", errDamaged}}, 0, true, []int{1}, 1, 1},
		"a page that names itself is not read for ever": {pages{"": {nil, "a", nil}, "a": {nil, "a", errDamaged}}, 0, false,
			nil, 2, 1},
	} {
		t.Run(reason, func(t *testing.T) {
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
			expect.Same(t, "items", tc.want, got)
			expect.Same(t, "pages and faults", []int{tc.read, tc.faults}, []int{read, faults})
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
