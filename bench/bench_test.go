package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/bench/ours"
	"github.com/longshore/longshore/bench/theirs"
	"github.com/longshore/longshore/bench/wire"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
)

// newStore is an empty data folder.
func newStore(t *testing.T) *bolt.Store {
	t.Helper()
	s := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// handlers are all that is measured.
func handlers(t *testing.T) map[string]http.Handler {
	t.Helper()
	memory := expect.Get(ours.New(memory.New(), wire.Log(io.Discard)))(t)
	durable := expect.Get(ours.New(newStore(t), wire.Log(io.Discard)))(t)
	peer := expect.Get(theirs.New(expect.Get(answer(memory, wire.Catalog()))(t), wire.Log(io.Discard)))(t)
	return map[string]http.Handler{"Memory": memory, "Durable": durable, "Peer": peer}
}

// No error is measured for an answer: both brokers give the statuses that the measurements require, inside and over loopback.
func TestEveryScenarioIsAnswered(t *testing.T) {
	for _, sc := range scenarios {
		for name, h := range handlers(t) {
			t.Run(sc.name+"/"+name, func(t *testing.T) {
				l := expect.Get(sc.load(func(s wire.Shot) ([]byte, error) { return answer(h, s) }))(t)
				r, err := inside(h, 2, time.Millisecond, l)
				if err != nil || r.nanoseconds <= 0 || r.allocations <= 0 || r.bytes <= 0 {
					t.Errorf("inside: %+v: %v", r, err)
				}
			})
		}
		for name := range handlers(t) {
			t.Run(sc.name+"/"+name+"/Loopback", func(t *testing.T) {
				measured := 50 * time.Millisecond
				r, err := overLoopback(t, sc, name, measured)
				for err != nil && measured < time.Minute { // a busy machine may take longer for one answer
					measured *= 4
					r, err = overLoopback(t, sc, name, measured)
				}
				if err != nil || r.perSecond <= 0 || r.median <= 0 || r.p99 < r.median {
					t.Errorf("over loopback: %+v: %v", r, err)
				}
			})
		}
	}
}

// overLoopback drives a handler of its own: ids are used once.
func overLoopback(t *testing.T, sc scenario, name string, measured time.Duration) (loadResult, error) {
	t.Helper()
	s := httptest.NewServer(handlers(t)[name])
	defer s.Close()
	address := s.Listener.Addr().String()
	l := expect.Get(sc.load(func(s wire.Shot) ([]byte, error) { return ask(address, s) }))(t)
	return drive(address, 2, time.Millisecond, measured, l)
}

// A wrong status ends a measurement.
func TestErrorsAreNotMeasured(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	l, _ := catalogs(nil)
	if _, err := inside(h, 2, time.Millisecond, l); err == nil {
		t.Error("inside: an error was measured")
	}
	s := httptest.NewServer(h)
	defer s.Close()
	if _, err := drive(s.Listener.Addr().String(), 2, 0, 20*time.Millisecond, l); err == nil ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("over loopback: an error was measured: %v", err)
	}
	for name, h := range handlers(t) {
		wrong := wire.Catalog()
		wrong.Path = "/v2/none"
		if _, err := answer(h, wrong); err == nil {
			t.Errorf("%s answers what is not there", name)
		}
	}
}

// Both catalogs are the same, but for what the other broker must write as null, and for what is newer than it.
func TestCatalogsAreTheSame(t *testing.T) {
	read := func(h http.Handler) (v any, size int) {
		body := expect.Get(answer(h, wire.Catalog()))(t)
		expect.OK(t, json.Unmarshal(body, &v))
		return pruned(v), len(body)
	}
	all := handlers(t)
	mine, mySize := read(all["Memory"])
	other, otherSize := read(all["Peer"])
	expect.Same(t, "the catalogs", mine, other)
	if mySize < otherSize*9/10 || otherSize < mySize*9/10 {
		t.Errorf("catalogs of %d and %d bytes are not alike", mySize, otherSize)
	}
}

// pruned leaves out what is null, false or empty, and binding_rotatable, which came with version 2.17 and brokerapi lacks.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "binding_rotatable")
		for name, member := range v {
			m := pruned(member)
			if object, is := m.(map[string]any); m == nil || m == false || is && len(object) == 0 {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return v
}

func TestMedianAndRatios(t *testing.T) {
	s := &section{heading: "heading"}
	for _, round := range [][2]float64{{1, 2}, {9, 3}, {4, 4}} {
		s.add("what", "unit", round[0], round[1])
	}
	m := s.measures[0]
	expect.Same(t, "ratios", []float64{0.5, 1, 3}, m.ratios())
	expect.Same(t, "median", 4, median(m.ours))
	var out strings.Builder
	s.print(&out)
	if want := "| what | unit |      4.00 |      3.00 |  1.00 | 0.50..3.00 |\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("table:\n%s\nwant the line\n%s", out.String(), want)
	}
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	expect.Same(t, "p99 of 1 to 100", 99, quantile(hundred, 0.99))
}

// This process's own memory can be read.
func TestResident(t *testing.T) {
	if bytes, err := resident(os.Getpid()); err != nil || bytes < 1e6 {
		t.Errorf("resident: %v bytes: %v", bytes, err)
	}
}

// Every operation is measured, on a server as full as it was said and on an empty one, and nothing is left of it.
func TestAFullServerIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two PostgreSQL servers")
	}
	t.Setenv("LONGSHORE_POSTGRES_BIN", filepath.Join("..", ".tools", "postgres-17.11.0", "bin"))
	dir := expect.Get(os.MkdirTemp("", "full-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	expect.OK(t, os.Chmod(dir, 0o711)) // as root, the server is another user's
	b := &bench{options: options{rounds: 1, manyDatabases: 2, manyBindings: 4}, dir: dir}
	s := expect.Get(b.full())(t)
	expect.Same(t, "so many things are measured", len(sampledSteps)+2, len(s.measures))
	for _, m := range s.measures {
		if len(m.ours) != 1 || m.ours[0] <= 0 || len(m.theirs) != 1 || m.theirs[0] <= 0 {
			t.Errorf("%s: %v and %v", m.what, m.ours, m.theirs)
		}
	}
}

// The copies of an instance are instances to the program: a command finds each of them.
func TestInstancesAreMultiplied(t *testing.T) {
	s := newStore(t)
	records := ledger.New(s, func() string { return "id" })
	made := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: original}, State: lifecycle.Ready, Created: time.Now()}
	expect.OK(t, records.Commit(t.Context(), ledger.Put(made)))
	expect.OK(t, multiply(s, 150))
	keys, _, err := records.Instances(t.Context(), "", "", 1000)
	if err != nil || len(keys) != 100 { // a page
		t.Errorf("the directory begins with %d instances: %v", len(keys), err)
	}
	last := lifecycle.Key{Platform: "p", Instance: copied(149)}
	if r, err := records.Record(t.Context(), last, time.Now()); err != nil || r.State != lifecycle.Ready {
		t.Errorf("the last copy is %q: %v", r.State, err)
	}
}
