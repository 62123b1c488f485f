package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
)

// The directory has what exists, the latest first: by pages, of one platform or of all, and
// without the help of what a ledger remembers.
func TestDirectory(t *testing.T) {
	s := newStore(t)
	ctx, now := t.Context(), epoch
	began := func(key lifecycle.Key) {
		t.Helper()
		now = now.Add(time.Second)
		start := lifecycle.Start{ID: now.Format("at150405"), Now: now}
		r, _, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{})
		if err == nil {
			bound := lifecycle.Record{Key: key.BindingKey("b"), State: lifecycle.Ready}
			err = over(s).Commit(ctx, ledger.Put(r), ledger.Put(bound))
		}
		expect.OK(t, err)
	}
	listed := func(platform string, limit int) (ids []string) {
		t.Helper()
		for k, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]lifecycle.Key, string, error) {
			page, next, err := over(s).Instances(ctx, platform, cursor, limit)
			if len(page) > limit && limit > 0 {
				t.Errorf("a page of %d has %d", limit, len(page))
			}
			return page, next, err
		}) {
			expect.OK(t, err)
			ids = append(ids, k.Platform+"/"+k.Instance+k.Life)
		}
		return ids
	}
	for _, k := range []lifecycle.Key{{Platform: "p", Instance: "1"}, {Platform: "q#", Instance: "2"},
		{Platform: "p", Instance: "3#"}} {
		began(k)
	}
	for _, limit := range []int{0, 1, 2, 3} {
		if all, of := listed("", limit), listed("p", limit); !slices.Equal(all, []string{"p/3#", "q#/2", "p/1"}) ||
			!slices.Equal(of, []string{"p/3#", "p/1"}) {
			t.Errorf("by %d: %q, and of p %q", limit, all, of)
		}
	}
	now = now.Add(time.Second) // a creation fails, and another one takes its id
	r, err := over(s).Record(ctx, lifecycle.Key{Platform: "p", Instance: "1"}, now)
	expect.OK(t, err)
	r, err = r.Fail(now, lifecycle.Failure{})
	expect.OK(t, err)
	former, again := r.SetAside(now), r
	again, _, err = r.BeginCreate(lifecycle.Start{ID: "again", Now: now}, lifecycle.Record{})
	if err == nil {
		err = over(s).Commit(ctx, ledger.Put(again), ledger.Put(*former))
	}
	if got := listed("p", 0); err != nil || !slices.Equal(got, []string{"p/1", "p/3#", "p/1" + former.Key.Life}) {
		t.Errorf("%q %v", got, err)
	}
	former.Version, again.Version = 1, 2
	again.State = lifecycle.Deleted
	err = over(s).Commit(ctx, ledger.Put(again), ledger.Delete(*former))
	if got := listed("", 0); err != nil || !slices.Equal(got, []string{"p/3#", "q#/2"}) {
		t.Errorf("%q %v", got, err)
	}
}

// NextTargetUse finds one use of each target without reading the others.
func TestTargetsInUse(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	serial := 0
	l := ledger.New(memory.New(), func() string { serial++; return fmt.Sprint(serial) })
	use := func(provider, target, incarnation string) lifecycle.TargetUse {
		r := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i-" + incarnation, Binding: "b"},
			Incarnation: incarnation,
			Provider:    provider, Made: lifecycle.Made{Target: lifecycle.Target{Name: target}}}
		return r.TargetUse(now)
	}
	all := []lifecycle.TargetUse{use("demo", "east", "1"), use("demo", "east", "2"), use("demo", "east#1", "3"), use("demo",
		"west", "4"),
		use("other", "east", "5")}
	for i, u := range all {
		expect.OK(t, l.Commit(t.Context(), ledger.Put(u)))
		all[i].Version = 1
	}
	for elsewhere, want := range map[bool][]lifecycle.TargetUse{false: all, true: {all[0], all[2], all[3], all[4]}} {
		var got []lifecycle.TargetUse
		for at := (lifecycle.TargetUse{}); len(got) < 10; {
			next, err := l.NextTargetUse(t.Context(), at, elsewhere)
			expect.OK(t, err)
			if next == nil {
				break
			}
			at = *next
			got = append(got, at)
		}
		expect.Same(t, fmt.Sprintf("elsewhere %v", elsewhere), want, got)
	}
	if got, err := l.TargetUse(t.Context(), use("demo", "west", "4")); err != nil || got.Version != 1 {
		t.Errorf("%+v %v", got, err)
	}
	expect.OK(t, l.Commit(t.Context(), ledger.Delete(all[4])))
	due, _, err := l.Due(t.Context(), all[0].Due, "")
	if err != nil || len(due) != 4 || due[0].TargetUse == nil {
		t.Errorf("due: %+v %v", due, err)
	}
}
