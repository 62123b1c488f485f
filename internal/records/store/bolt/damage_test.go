package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	walk "github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// A sample is a store's file with all that it holds.
type sample struct {
	file     []byte
	identity string
	pageSize int
	records  map[store.Key]store.Record
}

// newSample makes a file with pages of every kind: branches, leaves of small records, records over several pages, and free pages.
func newSample(t *testing.T) sample {
	t.Helper()
	path := newPath(t)
	s := open(t, path)
	sm := sample{identity: s.Identity(), records: fill(t, s, 130), pageSize: os.Getpagesize()}
	inOrder := func(a, b store.Key) int { return strings.Compare(a.Sort, b.Sort) }
	for _, k := range slices.SortedFunc(maps.Keys(sm.records), inOrder) {
		r := sm.records[k]
		switch k.Sort[len(k.Sort)-1] {
		case '3':
			expect.OK(t, s.Commit(t.Context(), store.Delete(k, 1)))
			delete(sm.records, k)
		case '7':
			expect.OK(t, s.Commit(t.Context(), store.Put(r)))
			r.Version++
			sm.records[k] = r
		}
	}
	closeStore(t, s)
	sm.file = expect.Get(os.ReadFile(path))(t)
	return sm
}

// verify opens a file that may be damaged, and reports whether Check finds it so. Every answer of a damaged file is right or
// ErrDamaged: no record is ever missing or another. Where Check finds nothing, everything is there. If so asked, it also commits.
func (sm sample) verify(t *testing.T, what, path string, file []byte, commits bool) (isDamaged bool) {
	t.Helper()
	sound := !sm.check(t, what, path, file)
	s, err := bolt.Open(path, bolt.Options{})
	if !sound && (errors.Is(err, bolt.ErrDamaged) || errors.Is(err, bolt.ErrNewer)) {
		return true
	}
	if err != nil {
		t.Fatalf("%s: sound is %t, and Open: %v", what, sound, err)
	}
	defer func() { _ = s.Close() }()
	expect.Same(t, what+": the identity", sm.identity, s.Identity())
	sm.judge(t, what, s, sound, sm.records)
	if !commits {
		return !sound
	}
	made := maps.Clone(sm.records)
	for i := range 3 {
		r := fixture("partition 0", fmt.Sprint("new ", i))
		switch err := s.Commit(t.Context(), store.Put(r)); {
		case err == nil:
			r.Version++
			made[r.Key] = r
		case sound || !errors.Is(err, bolt.ErrDamaged):
			t.Fatalf("%s: sound is %t, and Commit: %v", what, sound, err)
		}
	}
	sm.judge(t, what+", after commits", s, sound, made)
	return !sound
}

// check reports whether Check finds the file damaged. If not, everything is there.
func (sm sample) check(t *testing.T, what, path string, file []byte) (isDamaged bool) {
	t.Helper()
	_ = os.Remove(path) // a store that broke keeps the lock on its file
	expect.OK(t, os.WriteFile(path, file, 0o600))
	result, err := bolt.Check(t.Context(), path)
	if err != nil && !errors.Is(err, bolt.ErrNewer) {
		t.Fatalf("%s: Check: %v", what, err)
	}
	if err != nil || result.Wrong > 0 {
		return true
	}
	s := open(t, path)
	sm.judge(t, what, s, true, sm.records)
	closeStore(t, s)
	return false
}

// judge reads everything in both ways, and reports whether damage is in the way of it.
func (sm sample) judge(t *testing.T, what string, s *bolt.Store, sound bool, want map[store.Key]store.Record) (failed bool) {
	t.Helper()
	right := func(how string, err error, want, got any) {
		t.Helper()
		if err != nil {
			if sound || !errors.Is(err, bolt.ErrDamaged) {
				t.Fatalf("%s: sound is %t, and %s: %v", what, sound, how, err)
			}
		} else if d := cmp.Diff(want, got, bodies); d != "" {
			t.Fatalf("%s: %s without an error, but -want +got:\n%s", what, how, d)
		}
	}
	got, err := contents(t.Context(), s)
	right("reading everything", err, want, got)
	for k, r := range want {
		got, err := s.Get(t.Context(), k)
		right("Get", err, r, got)
	}
	return err != nil
}

// TestSoundFiles takes a file through a long history of all kinds of changes:
// whatever bbolt makes of its pages, it is never called damaged.
func TestSoundFiles(t *testing.T) {
	s := open(t, newPath(t))
	random := rand.New(rand.NewPCG(5, 6))
	versions := map[store.Key]int64{}
	var keys []store.Key // all that there ever were
	for i := range 600 {
		// The share of deletions swings, so that the trees grow and shrink.
		deletions := 2 + 6*((i/100)%2)
		var changes []store.Change
		changed := map[store.Key]bool{}
		for range 1 + random.IntN(20) {
			partition, sort := random.IntN(5), fmt.Sprintf("record %0*d", 1+random.IntN(90), random.IntN(200))
			r := fixture(fmt.Sprint("partition ", partition), sort)
			if random.IntN(3) > 0 && len(keys) > 0 {
				r.Key = keys[random.IntN(len(keys))]
			}
			if changed[r.Key] {
				continue
			}
			changed[r.Key] = true
			keys = append(keys, r.Key)
			r.Version = versions[r.Key]
			r.Body = make([]byte, 1<<random.IntN(15))
			r.Due = due.Add(time.Duration(random.IntN(1000)) * time.Second)
			if random.IntN(10) < deletions {
				changes = append(changes, store.Delete(r.Key, r.Version))
				delete(versions, r.Key)
			} else {
				changes = append(changes, store.Put(r))
				versions[r.Key] = r.Version + 1
			}
		}
		expect.OK(t, s.Commit(t.Context(), changes...))
		if i%3 == 0 || i == 599 {
			if found, err := s.Check(t.Context()); err != nil || found.Wrong > 0 || found.Records != len(versions) {
				t.Fatalf("after %d commits, with %d records: %+v %v", i+1, len(versions), found, err)
			}
		}
	}
}

func TestTruncated(t *testing.T) {
	sm := newSample(t)
	path := newPath(t)
	if sm.verify(t, "untouched", path, sm.file, true) {
		t.Fatal("the sample itself is damaged")
	}
	sizes := []int{0, 1, 15, 100, 1024}
	for page := 1; page*sm.pageSize < len(sm.file); page += 1 + page/20 {
		sizes = append(sizes, page*sm.pageSize-1, page*sm.pageSize, page*sm.pageSize+100)
	}
	damaged := 0
	for i, size := range sizes {
		if sm.verify(t, fmt.Sprintf("cut to %d bytes", size), path, sm.file[:size], i%4 == 0) {
			damaged++
		}
	}
	if damaged < len(sizes)/3 {
		t.Errorf("cutting damages %d of %d files, so the test proves nothing", damaged, len(sizes))
	}
}

func TestGarbage(t *testing.T) {
	sm := newSample(t)
	size, pages := sm.pageSize, len(sm.file)/sm.pageSize
	for name, kind := range map[string]struct {
		reason string
		times  int
		spoil  func(random *rand.Rand, page []byte)
	}{
		"RandomPage": {"a page of noise", 40, noise},
		"ZeroPage":   {"a page that was never written", 40, func(_ *rand.Rand, page []byte) { clear(page) }},
		"OtherPage": {"a page that was written to the wrong place",
			40, func(random *rand.Rand, page []byte) { copy(page, sm.file[size*random.IntN(pages):]) }},
		"OtherPageRenamed": {"which even says that it is the right one: if it was that once, only Check can tell", 40,
			func(random *rand.Rand, page []byte) { copy(page[8:], sm.file[size*random.IntN(pages)+8:]) }},
		"Header": {"noise in what says what the page is", 40, func(random *rand.Rand, page []byte) { noise(random, page[8:16]) }},
		"SmallHeader": {"small numbers in what says what the page is", 80, func(random *rand.Rand, page []byte) {
			binary.NativeEndian.PutUint16(page[8+2*random.IntN(4):], uint16(random.IntN(20)))
		}},
		"Elements": {"noise in what says where things are", 40,
			func(random *rand.Rand, page []byte) { noise(random, page[16:80]) }},
		"SmallElements": {"small numbers in what says where things are", 80, func(random *rand.Rand, page []byte) {
			binary.NativeEndian.PutUint32(page[16+4*random.IntN(40):], uint32(random.IntN(200)))
		}},
		"Bit": {"one bit", 120, func(random *rand.Rand, page []byte) { page[random.IntN(size)] ^= 1 << random.IntN(8) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(kind.times)))
			path := newPath(t)
			damaged := 0
			for i := range kind.times {
				file := bytes.Clone(sm.file)
				page := i // the first pages matter most
				if i > 8 {
					page = random.IntN(pages)
				}
				kind.spoil(random, file[page*size:][:size])
				what, renamed := fmt.Sprintf("page %d, %d", page, i), name == "OtherPageRenamed"
				if renamed && sm.check(t, what, path, file) || !renamed && sm.verify(t, what, path, file, i%4 == 0) {
					damaged++
				}
			}
			if damaged == 0 {
				t.Errorf("damage by %s is never found, so the test proves nothing", kind.reason)
			}
		})
	}
}

func noise(random *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(random.Uint32())
	}
}

// TestDamagedWhileOpen spoils the file behind an open store: each call is right or fails, and none panics or hangs.
func TestDamagedWhileOpen(t *testing.T) {
	sm := newSample(t)
	size, pages := sm.pageSize, len(sm.file)/sm.pageSize
	random := rand.New(rand.NewPCG(3, 4))
	for name, test := range map[string]struct {
		reason string
		times  int
		spoil  func(f *os.File, i int) error
	}{
		"Garbage": {"noise over some pages", 40, func(f *os.File, i int) error {
			page := make([]byte, size)
			for n := range 1 + i%5 {
				noise(random, page)
				at := random.IntN(pages)
				if i < 10 { // metas and what was there first
					at = (i + n) % pages
				}
				if _, err := f.WriteAt(page, int64(at*size)); err != nil {
					return err
				}
			}
			return nil
		}},
		"CutOff": {"the file is made shorter, so that mapped memory is gone",
			10, func(f *os.File, i int) error { return f.Truncate(int64(i * pages / 10 * size)) }},
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for i := range test.times {
				path := newPath(t)
				expect.OK(t, os.WriteFile(path, sm.file, 0o600))
				s := expect.Get(bolt.Open(path, bolt.Options{}))(t)
				f := expect.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
				expect.OK(t, errors.Join(test.spoil(f, i), f.Close()))
				if sm.judge(t, test.reason, s, false, sm.records) {
					failed++
				}
				for j := range 3 {
					_ = s.Commit(t.Context(), store.Put(fixture("partition 0", fmt.Sprint("new ", j)))) // may fail or not
				}
				_ = s.Close()
			}
			if failed == 0 {
				t.Error("no damage is ever noticed, so the test proves nothing")
			}
		})
	}
}

// TestDamagedContent changes what is in the buckets, in whole pages.
func TestDamagedContent(t *testing.T) {
	bad := fixture("a partition", "a damaged record")
	good := fixture("a partition", "a good record")
	badKey := keyOf(bad)
	change := func(f func(value []byte) []byte) func(records, due *bbolt.Bucket) error {
		return func(records, _ *bbolt.Bucket) error { return records.Put(badKey, f(bytes.Clone(records.Get(badKey)))) }
	}
	for name, test := range map[string]struct {
		reason string
		spoil  func(records, due *bbolt.Bucket) error
		// The calls that must notice it; Check always must.
		get, due bool
	}{
		"Body":   {"the last byte of its body", change(func(v []byte) []byte { v[len(v)-1] ^= 1; return v }), true, true},
		"Head":   {"the first byte of its checksum", change(func(v []byte) []byte { v[0] ^= 1; return v }), true, true},
		"Format": {"the number of its format", change(func(v []byte) []byte { v[8]++; return v }), true, true},
		"Length": {"the length of its envelope", change(func(v []byte) []byte { v[9] = 0xff; return v }), true, true},
		"Short":  {"all but its first bytes", change(func(v []byte) []byte { return v[:5] }), true, true},
		"Empty":  {"all of it", change(func([]byte) []byte { return nil }), true, true},
		"Swapped": {"the whole record, for another",
			func(records, _ *bbolt.Bucket) error {
				return records.Put(badKey, bytes.Clone(records.Get(keyOf(good))))
			}, true, true},
		"Gone": {"the whole record, for none",
			func(records, _ *bbolt.Bucket) error { return records.Delete(badKey) }, false, true},
		"NotDue": {"its place in the due index",
			func(_, due *bbolt.Bucket) error { return due.Delete(dueKeyOf(due, bad)) }, false, false},
		"DueTwice": {"its place in the due index, for two", func(_, due *bbolt.Bucket) error {
			k := dueKeyOf(due, bad)
			k[7]--
			return due.Put(k, []byte{1})
		}, false, true},
		"DueShort": {"the due index itself",
			func(_, due *bbolt.Bucket) error { return due.Put([]byte{0, 1}, []byte{1}) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path)
			expect.OK(t, s.Commit(t.Context(), store.Put(bad), store.Put(good)))
			edit(t, s, test.spoil)
			names := func(call string, err error) {
				t.Helper()
				if !errors.Is(err, bolt.ErrDamaged) || !strings.Contains(err.Error(), bad.Sort) {
					t.Errorf("%s of a record that has lost %s: got error %v, want one that is %v and names it",
						call, test.reason, err, bolt.ErrDamaged)
				}
			}
			if test.get {
				_, err := s.Get(t.Context(), bad.Key)
				names("Get", err)
				page, err := s.List(t.Context(), bad.Partition, "", "", 0)
				names("List", err)
				if len(page.Records) != 1 || page.Records[0].Sort != good.Sort || page.Next != "" {
					t.Errorf("beside a record that has lost %s, List gives %+v", test.reason, page)
				}
				names("Put", s.Commit(t.Context(), store.Put(bad)))
				names("Check", s.Commit(t.Context(), store.Check(bad.Key, 1)))
			}
			if test.due {
				expect.Fails(t, fmt.Sprintf("Due with a record that has lost %s", test.reason), bolt.ErrDamaged,
					expect.Err(s.Due(t.Context(), due.Add(time.Hour), "")))
			}
			expect.Get(s.Get(t.Context(), good.Key))(t, "another record is not to be read any more:")
			closeStore(t, s)
			result, err := bolt.Check(t.Context(), path)
			if err != nil || result.Wrong == 0 || !errors.Is(result.Problems[0], bolt.ErrDamaged) {
				t.Errorf("Check of a file in which a record has lost %s: %+v, %v", test.reason, result, err)
			}
		})
	}
}

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

// A damaged record takes no other with it out of a listing of everything, or of what is due; the listing names it.
func TestListingsGoAroundDamage(t *testing.T) {
	path, whole, bad := oneBad(t)
	s := open(t, path)
	dues := func(ctx context.Context, cursor string) (store.Page, error) {
		return s.Due(ctx, due.AddDate(1, 0, 0), cursor)
	}
	for name, read := range map[string]func(context.Context, string) (store.Page, error){"Scan": s.Scan, "Due": dues} {
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
			expect.Same(t, name, want, got, bodies)
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
	s := expect.Get(bolt.Open(path, bolt.Options{Clock: func() time.Time { return due }}))(t)
	expect.OK(t, s.Commit(t.Context(), store.Put(dropped)))
	identity := s.Identity()
	closeStore(t, s)
	to := newPath(t)
	saved, err := bolt.Salvage(path, to, "ANEW", func(r store.Record) bool { return r.Sort != dropped.Sort })
	if err != nil || saved.Identity != identity || saved.Records != len(whole) || saved.Wrong != 1 {
		t.Fatalf("%+v %v", saved, err)
	}
	expect.Says(t, "the problem", saved.Problems[0].Error(), bad.Sort)
	if result, err := bolt.Check(t.Context(), to); err != nil || result.Wrong > 0 || result.Identity != "ANEW" {
		t.Errorf("what was salvaged: %+v %v", result, err)
	}
	kept := open(t, to)
	expect.Same(t, "what was salvaged", whole, expect.Get(contents(t.Context(), kept))(t), bodies)
	if kept.LastCommit().Before(due) {
		t.Errorf("the last commit was at %v, and is said to have been at %v", due, kept.LastCommit())
	}
}

// However a file is damaged, nothing is salvaged that was not written, and what is salvaged is a sound file.
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
		got := expect.Get(contents(t.Context(), s))(t, what)
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
