package ledger_test

import (
	"context"
	"errors"
	"fmt"
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
		bound := lifecycle.Record{Key: key.BindingKey("b"), State: lifecycle.Ready}
		expect.OK(t, errors.Join(err, over(s).Commit(ctx, ledger.Put(r), ledger.Put(bound))))
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
		expect.Same(t, fmt.Sprint("all, by ", limit), []string{"p/3#", "q#/2", "p/1"}, listed("", limit))
		expect.Same(t, fmt.Sprint("those of p, by ", limit), []string{"p/3#", "p/1"}, listed("p", limit))
	}
	now = now.Add(time.Second) // a creation fails, and another one takes its id
	r := expect.Get(over(s).Record(ctx, lifecycle.Key{Platform: "p", Instance: "1"}, now))(t)
	r = expect.Get(r.Fail(now, lifecycle.Failure{}))(t)
	former := r.SetAside(now)
	again, _, err := r.BeginCreate(lifecycle.Start{ID: "again", Now: now}, lifecycle.Record{})
	expect.OK(t, errors.Join(err, over(s).Commit(ctx, ledger.Put(again), ledger.Put(*former))))
	expect.Same(t, "two lives", []string{"p/1", "p/3#", "p/1" + former.Key.Life}, listed("p", 0))
	former.Version, again.Version = 1, 2
	again.State = lifecycle.Deleted
	expect.OK(t, over(s).Commit(ctx, ledger.Put(again), ledger.Delete(*former)))
	expect.Same(t, "none of them", []string{"p/3#", "q#/2"}, listed("", 0))
}

// NextTargetUse finds one use of each target without reading the others.
func TestTargetsInUse(t *testing.T) {
	l := over(memory.New())
	use := func(provider, target, incarnation string) lifecycle.TargetUse {
		r := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i-" + incarnation, Binding: "b"},
			Incarnation: incarnation, Provider: provider, Made: lifecycle.Made{Target: lifecycle.Target{Name: target}}}
		return r.TargetUse(epoch)
	}
	all := []lifecycle.TargetUse{use("demo", "east", "1"),
		use("demo", "east", "2"), use("demo", "east#1", "3"), use("demo", "west", "4"), use("other", "east", "5")}
	for i, u := range all {
		expect.OK(t, l.Commit(t.Context(), ledger.Put(u)))
		all[i].Version = 1
	}
	for elsewhere, want := range map[bool][]lifecycle.TargetUse{false: all, true: {all[0], all[2], all[3], all[4]}} {
		var got []lifecycle.TargetUse
		for at := (lifecycle.TargetUse{}); len(got) < 10; {
			next := expect.Get(l.NextTargetUse(t.Context(), at, elsewhere))(t)
			if next == nil {
				break
			}
			at = *next
			got = append(got, at)
		}
		expect.Same(t, fmt.Sprintf("elsewhere %v", elsewhere), want, got)
	}
	expect.Same(t, "its version", 1, expect.Get(l.TargetUse(t.Context(), use("demo", "west", "4")))(t).Version)
	expect.OK(t, l.Commit(t.Context(), ledger.Delete(all[4])))
	due, _, err := l.Due(t.Context(), all[0].Due, "")
	if err != nil || len(due) != 4 || due[0].TargetUse == nil {
		t.Errorf("due: %+v %v", due, err)
	}
}
