package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	walk "github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// oneBad is a file with records, of which one is damaged.
func oneBad(t *testing.T) (path string, whole map[store.Key]store.Record, bad store.Key) {
	t.Helper()
	path = newPath(t)
	s := open(t, path)
	whole = fill(t, s, 130)
	broken := fixture("partition 1", "broken")
	broken.Due = due
	broken.Body = []byte("this one is not kept as it was written")
	expect.OK(t, s.Commit(t.Context(), store.Put(broken)))
	closeStore(t, s)
	file := expect.Get(os.ReadFile(path))(t)
	expect.OK(t, os.WriteFile(path, bytes.ReplaceAll(file, broken.Body, bytes.ToUpper(broken.Body)), 0o600))
	return path, whole, broken.Key
}

// A damaged record takes no other with it out of a listing of everything, or of what is
// due; the listing names it.
func TestListingsGoAroundDamage(t *testing.T) {
	path, whole, bad := oneBad(t)
	s := open(t, path)
	for name, read := range map[string]func(ctx context.Context, cursor string) (store.Page, error){"Scan": s.Scan,
		"Due": func(ctx context.Context, cursor string) (store.Page, error) {
			return s.Due(ctx, due.AddDate(1, 0, 0), cursor)
		}} {
		t.Run(name, func(t *testing.T) {
			got := map[store.Key]store.Record{}
			var faults []error
			for r, err := range walk.All(t.Context(), func(ctx context.Context, cursor string) ([]store.Record, string, error) {
				page, err := read(ctx, cursor)
				return page.Records, page.Next, err
			}) {
				if err != nil {
					faults = append(faults, err)
					continue
				}
				got[r.Key] = r
			}
			want := maps.Clone(whole)
			maps.DeleteFunc(want, func(_ store.Key, r store.Record) bool { return name == "Due" && r.Due.IsZero() })
			if d := cmp.Diff(want, got, bodies); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(faults) != 1 || !errors.Is(faults[0], bolt.ErrDamaged) || !strings.Contains(faults[0].Error(), bad.Sort) {
				t.Errorf("it says %v, want once that %q is damaged", faults, bad.Sort)
			}
		})
	}
}

// Salvage makes a sound file of the records in a damaged one that are whole.
func TestSalvage(t *testing.T) {
	path, whole, bad := oneBad(t)
	dropped := fixture("partition 0", "of no use")
	s := expect.Get(bolt.Open(path, bolt.Clock(func() time.Time { return due })))(t)
	expect.OK(t, s.Commit(t.Context(), store.Put(dropped)))
	identity := s.Identity()
	closeStore(t, s)
	to := newPath(t)
	saved, err := bolt.Salvage(path, to, "ANEW", func(r store.Record) bool { return r.Sort != dropped.Sort })
	if err != nil || saved.Identity != identity || saved.Records != len(whole) || saved.Wrong != 1 {
		t.Fatalf("%+v %v", saved, err)
	}
	if !strings.Contains(saved.Problems[0].Error(), bad.Sort) {
		t.Errorf("it names %v", saved.Problems)
	}
	if result, err := bolt.Check(t.Context(), to); err != nil || result.Wrong > 0 || result.Identity != "ANEW" {
		t.Errorf("what was salvaged: %+v %v", result, err)
	}
	kept := open(t, to)
	got, err := contents(t.Context(), kept)
	if d := cmp.Diff(whole, got, bodies); err != nil || d != "" {
		t.Errorf("%v, -want +got:\n%s", err, d)
	}
	if kept.LastCommit().Before(due) {
		t.Errorf("the last commit was at %v, and is said to have been at %v", due, kept.LastCommit())
	}
}

// However a file is damaged, nothing is salvaged that was not written, and what is
// salvaged is a sound file.
func TestSalvageOfGarbage(t *testing.T) {
	sm := newSample(t)
	random := rand.New(rand.NewPCG(7, 8))
	size, count := sm.pageSize, len(sm.file)/sm.pageSize
	much := 0
	for i := range 36 {
		file := bytes.Clone(sm.file)
		page := i // the first pages matter most
		if i > 10 {
			page = random.IntN(count)
		}
		switch at := file[page*size:][:size]; i % 3 {
		case 0:
			noise(random, at)
		case 1:
			clear(at)
		default:
			file = file[:page*size+size/2]
		}
		what := fmt.Sprintf("page %d, %d", page, i)
		from, to := newPath(t), newPath(t)
		expect.OK(t, os.WriteFile(from, file, 0o600))
		saved, err := bolt.Salvage(from, to, "ANEW", func(store.Record) bool { return true })
		if err != nil {
			if !errors.Is(err, bolt.ErrDamaged) && !errors.Is(err, bolt.ErrNewer) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if result, err := bolt.Check(t.Context(), to); err != nil || result.Wrong > 0 || result.Records != saved.Records {
			t.Errorf("%s: what was salvaged: %+v %v, want %d records", what, result, err, saved.Records)
		}
		s := open(t, to)
		got, err := contents(t.Context(), s)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for k, r := range got {
			// A file may have gone back by one commit: its last meta is damaged.
			if was := sm.records[k]; was.Version == r.Version && !cmp.Equal(was, r, bodies) {
				t.Errorf("%s: %v is %+v", what, k, r)
			}
		}
		closeStore(t, s)
		if len(got) > len(sm.records)*9/10 {
			much++
		}
	}
	if much < 12 {
		t.Errorf("only %d of 36 damaged files gave most of what they held", much)
	}
}
