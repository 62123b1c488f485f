package files_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/files"
	"github.com/longshore/longshore/internal/test/demotest"
)

// dirVariable has the tests, started as another process, change the folder that
// it names for ever.
const dirVariable = "FILES_TEST_DIR"

// changers are how many change a folder at once.
const changers = 16

func TestMain(m *testing.M) {
	dir, ok := os.LookupEnv(dirVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := changeForEver(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func thingOf(c, n int) string { return fmt.Sprintf("changer-%d-thing-%06d", c, n) }

// changeForEver has each changer make a thing, change it, and delete the one before
// it. It names each change that was answered.
func changeForEver(dir string) error {
	f, err := files.Open(dir)
	if err != nil {
		return err
	}
	var mu sync.Mutex // one line at a time
	errs := make(chan error)
	for c := range changers {
		go func() {
			for n := 1; ; n++ {
				if err := changeOnce(f, c, n, func(what string) {
					mu.Lock()
					defer mu.Unlock()
					fmt.Println(c, n, what)
				}); err != nil {
					errs <- err
				}
			}
		}()
	}
	return <-errs
}

func changeOnce(f *files.Folder, c, n int, answered func(what string)) error {
	ctx := context.Background()
	if err := f.Create(ctx, demotest.Whole(thingOf(c, n))); err != nil {
		return err
	}
	answered("created")
	t, err := f.Get(ctx, thingOf(c, n))
	if err != nil {
		return err
	}
	t.Plan = "changed"
	if err := f.Replace(ctx, t); err != nil {
		return err
	}
	answered("replaced")
	if n == 1 {
		return nil
	}
	former, err := f.Get(ctx, thingOf(c, n-1))
	if err != nil {
		return err
	}
	if err := f.Delete(ctx, former); err != nil {
		return err
	}
	answered("deleted")
	return nil
}

// A process that is killed in the midst of changes by many callers has made every
// change that it answered, and at most the one after it of each caller.
func TestKilled(t *testing.T) {
	for round := range 3 {
		dir := t.TempDir()
		for c, last := range killed(t, dir, 200+37*round) {
			checkChanger(t, open(t, dir), c, last)
		}
		for _, name := range entries(t, dir) {
			if name != ".lock" && name[0] == '.' {
				t.Errorf("round %d: %s is left", round, name)
			}
		}
	}
}

// An answer is the last one that a changer had.
type answer struct {
	n    int
	what string
}

// killed kills a process after some answers, and gives the last of each changer.
func killed(t *testing.T, dir string, answers int) map[int]answer {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	p := exec.Command(program)
	p.Env = append(os.Environ(), dirVariable+"="+dir)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	must(t, err)
	must(t, p.Start())
	lines := bufio.NewScanner(out)
	last := map[int]answer{}
	for n := 1; lines.Scan(); n++ { // also what it said before it died
		var c int
		var a answer
		if _, err := fmt.Sscan(lines.Text(), &c, &a.n, &a.what); err != nil {
			t.Errorf("the other process says %q: %v", lines.Text(), err)
		}
		last[c] = a
		if n == answers {
			must(t, p.Process.Kill())
		}
	}
	_ = p.Wait() // killed, as it should be
	if len(last) != changers {
		t.Errorf("only %v were answered, so the test proves little", last)
	}
	return last
}

func checkChanger(t *testing.T, f *files.Folder, c int, last answer) {
	t.Helper()
	plans := func(n int) string {
		thing, err := f.Get(t.Context(), thingOf(c, n))
		switch {
		case err == nil:
			return thing.Plan
		case err.Error() == fmt.Sprintf("reading thing %q: %v", thingOf(c, n), demo.ErrNotFound):
			return "absent"
		default:
			return err.Error()
		}
	}
	former, this, next := plans(last.n-1), plans(last.n), plans(last.n+1)
	state := former + " " + this + " " + next
	allowed := map[string][]string{
		"created":  {"changed plan absent", "changed changed absent"},
		"replaced": {"changed changed absent", "absent changed absent"},
		"deleted":  {"absent changed absent", "absent changed plan"},
	}[last.what]
	if last.n == 1 {
		allowed = map[string][]string{
			"created":  {"absent plan absent", "absent changed absent"},
			"replaced": {"absent changed absent", "absent changed plan"},
		}[last.what]
	}
	for _, a := range allowed {
		if state == a {
			return
		}
	}
	t.Errorf("changer %d was answered %v; the things are %q, want one of %q", c, last, state, allowed)
}
