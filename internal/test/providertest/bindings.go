package providertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/longshore/longshore/internal/base/provider"
)

// Each binding has credentials of its own (BIND-16).
func testBindings(t *testing.T, open stage) {
	s := open(t)
	in := s.provision(platform, "instance-1")
	s.must(in)
	a, b := s.bind(in, "binding-1"), s.bind(in, "binding-2")
	first, second := s.must(a).Grant, s.must(b).Grant
	if cmp.Equal(first.Credentials, second.Credentials) {
		t.Error("two bindings got the same credentials")
	}
	for _, p := range passwords(first.Credentials) {
		for _, q := range passwords(second.Credentials) {
			if p == q {
				t.Error("two bindings got the same password")
			}
		}
	}
	u := s.unbind(a)
	s.must(u)
	s.none(u)
	s.one(b)
	if s.Opens(t, first) || !s.Opens(t, second) {
		t.Error("after one unbind: want its credentials refused, and the other's accepted")
	}
	sameGrant(t, second, s.must(b).Grant)
	s.one(in)
	s.finish()
}

func testGrants(t *testing.T, open stage) {
	s := open(t)
	in := s.provision(platform, "instance-1")
	s.must(in)
	for _, app := range []string{"app-1", ""} {
		b := s.bind(in, "binding-1")
		b.binding.AppGUID = app
		first := s.must(b).Grant
		if len(first.Credentials) == 0 {
			t.Error("the grant has no credentials")
		}
		var kept provider.Grant
		if err := json.Unmarshal([]byte(snapshot(first)), &kept); err != nil {
			t.Fatalf("the grant cannot be kept: %v", err)
		}
		sameGrant(t, first, &kept)
		for range 2 {
			s.Clock.Advance(time.Hour)
			sameGrant(t, first, s.must(b).Grant)
			again, f := Drive(t, s.Clock, b.step(s.reopened()))
			if f != nil {
				t.Fatalf("bind, repeated after a restart, failed: %s", f.Message)
			}
			sameGrant(t, first, again.Grant)
		}
	}
	s.finish()
}

func testInventory(t *testing.T, open stage) {
	s := open(t)
	start := s.Clock.Now()
	want := map[provider.Tags]bool{}
	for n := range s.PageSize + 1 {
		in := s.provision(platform, fmt.Sprintf("instance-%d", n))
		s.must(in)
		want[in.tags()] = true
		if len(want) <= 2*s.PageSize {
			b := s.bind(in, fmt.Sprintf("binding-%d", n))
			s.must(b)
			want[b.tags()] = true
		}
		s.Clock.Advance(time.Second)
	}
	_, reopened := s.Open(t, s.Broker)
	for _, inventory := range []provider.Inventory{s.Inventory, reopened, s.Inventory} {
		got, names := map[provider.Tags]bool{}, map[string]bool{}
		pages := s.pages(inventory)
		for _, page := range pages {
			if len(page) > s.PageSize {
				t.Errorf("a page of %d, want at most %d", len(page), s.PageSize)
			}
			for _, h := range page {
				if got[h.Tags] || names[h.Name] || h.Name == "" {
					t.Errorf("listed twice, or without a name: %+v", h)
				}
				got[h.Tags], names[h.Name] = true, true
				if h.Created.Before(start) || h.Created.After(s.Clock.Now()) || h.Created.Location() != time.UTC {
					t.Errorf("created %v, want a time in UTC from %v to %v", h.Created, start, s.Clock.Now())
				}
			}
		}
		if len(pages) < 2 {
			t.Errorf("%d things on %d page", len(want), len(pages))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("inventory (-want +got):\n%s", diff)
		}
	}
	s.finish()
	if left := s.list(); len(left) > 0 {
		t.Errorf("inventory is not empty in the end: %+v", left)
	}
}

// sameGrant requires that two grants are the same, without telling them.
func sameGrant(t testing.TB, a, b *provider.Grant) {
	t.Helper()
	if snapshot(a) != snapshot(b) {
		t.Error("the same bind gave two different grants")
	}
}
