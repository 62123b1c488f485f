package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/files"
	"github.com/longshore/longshore/internal/test/demotest"
)

func open(t *testing.T, dir string) *files.Folder {
	t.Helper()
	f, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestThings(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "made", "on", "demand")
	f := open(t, dir)
	if _, err := f.Get(ctx, "a"); !errors.Is(err, demo.ErrNotFound) {
		t.Errorf("get of what is not there: %v, want %v", err, demo.ErrNotFound)
	}
	must(t, f.Create(ctx, demotest.Whole("a")))
	other := demotest.Whole("a")
	other.Plan = "other"
	if err := f.Create(ctx, other); !errors.Is(err, demo.ErrExists) {
		t.Errorf("create of what is there: %v, want %v", err, demo.ErrExists)
	}
	read, err := open(t, dir).Get(ctx, "a")
	must(t, err)
	if read.Revision == "" {
		t.Error("the thing was read without a revision")
	}
	want := demotest.Whole("a")
	want.Revision = read.Revision
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("thing (-created +read):\n%s", diff)
	}

	next := read
	next.Plan = "plan-3"
	must(t, f.Replace(ctx, next))
	for name, err := range map[string]error{
		"replace of what has changed": f.Replace(ctx, next),
		"delete of what has changed":  f.Delete(ctx, read),
		"replace of what is not read": f.Replace(ctx, demotest.Whole("a")),
		"replace of what is absent":   f.Replace(ctx, demotest.Whole("b")),
	} {
		if !errors.Is(err, demo.ErrChanged) {
			t.Errorf("%s: %v, want %v", name, err, demo.ErrChanged)
		}
	}
	read, err = f.Get(ctx, "a")
	must(t, err)
	if read.Plan != "plan-3" {
		t.Errorf("plan %q, want %q", read.Plan, "plan-3")
	}
	must(t, f.Delete(ctx, read))
	must(t, f.Delete(ctx, read)) // gone already
	if err := f.Replace(ctx, read); !errors.Is(err, demo.ErrChanged) {
		t.Errorf("replace of what is gone: %v, want %v", err, demo.ErrChanged)
	}
	if page, next, err := f.List(ctx, ""); len(page) > 0 || next != "" || err != nil {
		t.Errorf("list after all is gone: %v, %q, %v", page, next, err)
	}
}

// PINs cannot be guessed from what lies in the folder.
func TestParametersCannotBeGuessed(t *testing.T) {
	demotest.RunGuesses(t, func(t *testing.T) (demo.Things, func() string) {
		dir := t.TempDir()
		return open(t, dir), func() string { return all(t, dir) }
	})
}

// all is all that lies in the folder.
func all(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		fmt.Fprintf(&out, "%s\n%s\n", e.Name(), body)
	}
	return out.String()
}

// What earlier programs wrote is read, updated and deleted, and loses its digests
// when the folder is opened.
func TestThingsWithADigest(t *testing.T) {
	const digest = "5c1f0d9a5d3cbe0c8a2dbe5e21f3f2ab"
	dir := t.TempDir()
	f := open(t, dir)
	odd := demotest.Whole("odd")
	odd.Tags.Instance = `"parameters": "mine"`
	must(t, errors.Join(f.Create(t.Context(), demotest.Whole("a")), f.Create(t.Context(), odd)))
	path, oddPath := filepath.Join(dir, "a.json"), filepath.Join(dir, "odd.json")
	body, err := os.ReadFile(path)
	must(t, err)
	oddBefore, err := os.Stat(oddPath)
	must(t, err)
	for _, plan := range []string{`"plan": "plan",`, `"plan": "plan-2"`} {
		body = []byte(strings.Replace(string(body), plan,
			strings.TrimSuffix(plan, ",")+`, "parameters": "`+digest+`"`+plan[len(strings.TrimSuffix(plan, ",")):], 1))
	}
	if n := strings.Count(string(body), digest); n != 2 {
		t.Fatalf("%d digests in %s", n, body)
	}
	must(t, os.WriteFile(path, body, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "damaged.json"), []byte(`{"parameters": "`), 0o600))

	f = open(t, dir)
	if left := all(t, dir); strings.Contains(left, digest) {
		t.Errorf("a digest is left:\n%s", left)
	}
	read, err := f.Get(t.Context(), "a")
	must(t, err)
	want := demotest.Whole("a")
	want.Revision = read.Revision
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("thing (-written +read):\n%s", diff)
	}
	if oddAfter, err := os.Stat(oddPath); err != nil || !os.SameFile(oddBefore, oddAfter) {
		t.Errorf("a thing without a digest was written again: %v", err)
	}
	must(t, f.Replace(t.Context(), read))
	read, err = f.Get(t.Context(), "a")
	must(t, err)
	must(t, f.Delete(t.Context(), read))
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "things")
	f := open(t, dir)
	must(t, f.Create(t.Context(), demotest.Whole("a")))
	read, err := f.Get(t.Context(), "a")
	must(t, err)
	must(t, f.Replace(t.Context(), read))
	for path, want := range map[string]os.FileMode{
		dir:                          0o700 | os.ModeDir,
		filepath.Join(dir, "a.json"): 0o600,
		filepath.Join(dir, ".lock"):  0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestNames(t *testing.T) {
	parent := t.TempDir()
	f := open(t, filepath.Join(parent, "things"))
	for _, name := range []string{"", "../a", "a/b", "A", "a.b", ".new-a", strings.Repeat("a", 201)} {
		thing := demotest.Whole("a")
		thing.Name = name
		_, err := f.Get(t.Context(), name)
		for verb, err := range map[string]error{
			"get":     err,
			"create":  f.Create(t.Context(), thing),
			"replace": f.Replace(t.Context(), thing),
			"delete":  f.Delete(t.Context(), thing),
		} {
			if err == nil || errors.Is(err, demo.ErrNotFound) || errors.Is(err, demo.ErrChanged) {
				t.Errorf("%s of name %q: %v, want a refusal", verb, name, err)
			}
		}
	}
	entries, err := os.ReadDir(parent)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("files outside of the folder: %v", entries)
	}
}

func TestList(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	f := open(t, dir)
	var want []string
	for n := range 2*files.PageSize + 1 {
		name := fmt.Sprintf("thing-%03d", n)
		must(t, f.Create(ctx, demotest.Whole(name)))
		want = append(want, name)
	}
	must(t, os.WriteFile(filepath.Join(dir, "README.txt"), []byte("not a thing"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".new-1"), []byte("half a th"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "Not a name.json"), []byte("not a thing"), 0o600))

	var got []string
	var sizes []int
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := f.List(ctx, cursor)
		must(t, err)
		for _, thing := range page {
			got = append(got, thing.Name)
		}
		sizes = append(sizes, len(page))
		// What goes between two pages moves nothing off them.
		must(t, f.Delete(ctx, page[0]))
		cursor = next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{files.PageSize, files.PageSize, 1}, sizes); diff != "" {
		t.Errorf("sizes of pages (-want +got):\n%s", diff)
	}
}

// A crash leaves unfinished files: before they had a name, or after a link
// gave them one. They are never listed, and gone after the next start.
func TestLeftovers(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	f := open(t, dir)
	must(t, f.Create(ctx, demotest.Whole("a")))
	must(t, os.WriteFile(filepath.Join(dir, ".new-123"), []byte(`{"na`), 0o600))
	must(t, os.Link(filepath.Join(dir, "a.json"), filepath.Join(dir, ".new-456")))
	names := func(f *files.Folder) []string {
		t.Helper()
		page, _, err := f.List(ctx, "")
		must(t, err)
		var names []string
		for _, thing := range page {
			names = append(names, thing.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"a"}, names(f)); diff != "" {
		t.Errorf("before the start (-want +got):\n%s", diff)
	}
	f = open(t, dir)
	if diff := cmp.Diff([]string{"a"}, names(f)); diff != "" {
		t.Errorf("after the start (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{".lock", "a.json"}, entries(t, dir)); diff != "" {
		t.Errorf("files after the start (-want +got):\n%s", diff)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

func TestDamagedFiles(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
	}{
		"Empty":     {"as after a full disk", ""},
		"Cut":       {"half of a thing", `{"name":"a","tags":{"plat`},
		"Null":      {"JSON that is nothing", "null"},
		"Array":     {"JSON of another shape", "[1]"},
		"WrongType": {"a member of another type", `{"name":"a","past":7}`},
		"Renamed":   {"a thing under another's name", `{"name":"b"}`},
		"Trailing":  {"more than one thing", `{"name":"a"}{"name":"a"}`},
		"Binary":    {"no text at all", "\x00\xff\xfe"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.json")
			must(t, os.WriteFile(path, []byte(c.body), 0o600))
			f := open(t, dir)
			_, get := f.Get(t.Context(), "a")
			_, _, list := f.List(t.Context(), "")
			for verb, err := range map[string]error{"get": get, "list": list} {
				if err == nil || errors.Is(err, demo.ErrNotFound) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %s: %v, want an error that names %s", c.reason, verb, err, path)
				}
			}
			if err := f.Create(t.Context(), demotest.Whole("a")); !errors.Is(err, demo.ErrExists) {
				t.Errorf("%s: create: %v, want %v", c.reason, err, demo.ErrExists)
			}
			kept, err := os.ReadFile(path)
			must(t, err)
			if string(kept) != c.body {
				t.Errorf("%s: the file was changed", c.reason)
			}
		})
	}
}

// A folder that is gone proves no absence.
func TestFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "things")
	f := open(t, dir)
	must(t, os.RemoveAll(dir))
	_, get := f.Get(t.Context(), "a")
	_, _, list := f.List(t.Context(), "")
	for verb, err := range map[string]error{
		"get": get, "list": list, "create": f.Create(t.Context(), demotest.Whole("a")), "delete": f.Delete(t.Context(), demotest.Whole("a")),
	} {
		if err == nil || errors.Is(err, demo.ErrNotFound) {
			t.Errorf("%s: %v, want an error other than not found", verb, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := files.Open(file); err == nil {
		t.Error("a file was opened as a folder")
	}
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, get := f.Get(ctx, "a")
	_, _, list := f.List(ctx, "")
	for verb, err := range map[string]error{
		"get": get, "list": list, "create": f.Create(ctx, demotest.Whole("a")),
		"replace": f.Replace(ctx, demotest.Whole("a")), "delete": f.Delete(ctx, demotest.Whole("a")),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", verb, err, context.Canceled)
		}
	}
	if diff := cmp.Diff([]string{".lock"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Of many that make, change or delete one thing at once, over folders opened
// by themselves, one does.
func TestConcurrent(t *testing.T) {
	const callers = 8
	ctx := t.Context()
	dir := t.TempDir()
	f := open(t, dir)
	// race has each caller do its work at once, with a folder of its own, and
	// counts those that lost.
	race := func(lost error, do func(f *files.Folder, n int) error) {
		t.Helper()
		var wg sync.WaitGroup
		errs := make([]error, callers)
		start := make(chan struct{})
		for n := range callers {
			wg.Go(func() {
				<-start
				own, err := files.Open(dir) // cleans up while others write
				if err == nil {
					err = do(own, n)
				}
				errs[n] = err
			})
		}
		close(start)
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, lost) {
				t.Errorf("error %v, want none or %v", err, lost)
			}
		}
		if won != 1 {
			t.Errorf("%d won, want 1", won)
		}
	}
	for range 3 {
		race(demo.ErrExists, func(f *files.Folder, n int) error {
			thing := demotest.Whole("a")
			thing.Plan = fmt.Sprint("made by ", n)
			return f.Create(ctx, thing)
		})
		read, err := f.Get(ctx, "a")
		must(t, err)
		race(demo.ErrChanged, func(f *files.Folder, n int) error {
			next := read
			next.Plan = fmt.Sprint("changed by ", n)
			return f.Replace(ctx, next)
		})
		read, err = f.Get(ctx, "a")
		must(t, err)
		must(t, f.Delete(ctx, read))
	}
	if diff := cmp.Diff([]string{".lock"}, entries(t, dir)); diff != "" {
		t.Errorf("files in the end (-want +got):\n%s", diff)
	}
}

// Of the callers of one folder that make one thing at once, one does, and all are
// answered. None of them is kept from it by one that gave up.
func TestTogether(t *testing.T) {
	const callers = 32
	dir := t.TempDir()
	f := open(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	release := f.Hold()
	errs := make(chan error)
	for n := range callers {
		ctx := t.Context()
		if n%2 == 0 {
			ctx = ended
		}
		go func() { errs <- f.Create(ctx, demotest.Whole("a")) }()
	}
	cancel()
	for range callers / 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("while another has the turn: %v, want %v", err, context.Canceled)
		}
	}
	release()
	won := 0
	for range callers / 2 {
		if err := <-errs; err == nil {
			won++
		} else if !errors.Is(err, demo.ErrExists) {
			t.Errorf("got %v, want none or %v", err, demo.ErrExists)
		}
	}
	if won != 1 {
		t.Errorf("%d won, want 1", won)
	}
	if diff := cmp.Diff([]string{".lock", "a.json"}, entries(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A change that waits for its turn gives up with its context.
func TestAWaitingChangeEndsWithItsContext(t *testing.T) {
	f := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	held := f.Hold()
	go func() { waits <- f.Create(ctx, demo.Thing{Name: "a-thing"}) }()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	held()
	if err := f.Create(t.Context(), demo.Thing{Name: "a-thing"}); err != nil {
		t.Errorf("the next change: %v", err)
	}
}
