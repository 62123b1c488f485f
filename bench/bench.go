package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/longshore/longshore/bench/ours"
	"github.com/longshore/longshore/bench/theirs"
	"github.com/longshore/longshore/bench/wire"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/memory"
)

// A bench is one run of the benchmark.
type bench struct {
	options
	dir     string
	catalog string // the file that the other broker reads its catalog from
	serial  int
}

// prepare writes our catalog for the other broker.
func (b *bench) prepare() error {
	h, err := ours.New(memory.New(), wire.Log(io.Discard))
	if err != nil {
		return err
	}
	body, err := answer(h, wire.Catalog())
	if err != nil {
		return err
	}
	return os.WriteFile(b.catalog, body, 0o600)
}

// path returns a new path in the folder of the run.
func (b *bench) path(name string) string {
	b.serial++
	return filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.serial))
}

// A scenario is one kind of work that is measured.
type scenario struct {
	name string
	// durable makes Longshore keep its records on disk.
	durable bool
	// silent keeps both brokers from logging; it is measured inside the process only.
	silent bool
	// batch is the number of requests that are prepared at a time inside the process.
	batch int
	// load prepares the broker by means of send, and returns the load to measure.
	load func(send func(wire.Shot) ([]byte, error)) (load, error)
}

var scenarios = []scenario{
	{name: "catalog", durable: true, batch: 500, load: catalogs},
	{name: "last_operation", durable: true, batch: 500, load: polls},
	{name: "last_operation, handler alone (nothing on disk)", batch: 500, load: polls},
	{name: "last_operation, handler alone, nothing logged", silent: true, batch: 500, load: polls},
	{name: "provision, handler alone (nothing on disk)", batch: 500, load: provisions},
	{name: "provision, handler alone, nothing logged", silent: true, batch: 500, load: provisions},
	{name: "provision, durable", durable: true, batch: 50, load: provisions},
}

func (sc scenario) log() *slog.Logger {
	if sc.silent {
		return slog.New(slog.DiscardHandler)
	}
	return wire.Log(io.Discard)
}

func catalogs(func(wire.Shot) ([]byte, error)) (load, error) {
	return func(int, int) wire.Shot { return wire.Catalog() }, nil
}

// polls returns a load that polls one operation in progress.
func polls(send func(wire.Shot) ([]byte, error)) (load, error) {
	const id = "8f14a7c2-5f4e-4b6a-9c55-polled000000"
	body, err := send(wire.Provision(id))
	if err != nil {
		return nil, fmt.Errorf("making what is polled: %w", err)
	}
	var accepted struct{ Operation string }
	if err := json.Unmarshal(body, &accepted); err != nil || accepted.Operation == "" {
		return nil, fmt.Errorf("no operation in %q", body)
	}
	s := wire.LastOperation(id, accepted.Operation)
	body, err = send(s)
	if err != nil || !strings.Contains(string(body), `"in progress"`) {
		return nil, fmt.Errorf("the operation is not in progress: %q: %w", body, err)
	}
	return func(int, int) wire.Shot { return s }, nil
}

// provisions returns a load that creates an instance with a new id each time.
func provisions(func(wire.Shot) ([]byte, error)) (load, error) {
	return func(client, n int) wire.Shot {
		return wire.Provision(fmt.Sprintf("8f14a7c2-5f4e-4b6a-%04d-%012d", client, n))
	}, nil
}

// alternate runs the rounds one after another; the two brokers take turns at going first.
func alternate[T any](rounds int, mine, other func() (T, error), add func(mine, other T)) error {
	for round := range rounds {
		var a, b T
		var errA, errB error
		if round%2 == 0 {
			a, errA = mine()
			b, errB = other()
		} else {
			b, errB = other()
			a, errA = mine()
		}
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		add(a, b)
	}
	return nil
}

// handlers compares the handlers inside this process.
func (b *bench) handlers() (*section, error) {
	out := &section{heading: "Inside the handler, one request after another"}
	for _, sc := range scenarios {
		err := alternate(b.rounds,
			func() (insideResult, error) { return b.insideOurs(sc, b.long) },
			func() (insideResult, error) {
				h, err := b.theirs(sc.log())
				if err != nil {
					return insideResult{}, err
				}
				return insideOf(h, sc, b.long)
			},
			func(mine, other insideResult) {
				out.add(sc.name, "microseconds", mine.nanoseconds/1e3, other.nanoseconds/1e3)
				out.add(sc.name, "allocations", mine.allocations, other.allocations)
				out.add(sc.name, "bytes", mine.bytes, other.bytes)
			})
		if err != nil {
			return nil, fmt.Errorf("%s, inside: %w", sc.name, err)
		}
	}
	return out, nil
}

func (b *bench) theirs(log *slog.Logger) (http.Handler, error) {
	catalog, err := os.ReadFile(b.catalog)
	if err != nil {
		return nil, err
	}
	return theirs.New(catalog, log)
}

func (b *bench) insideOurs(sc scenario, long time.Duration) (_ insideResult, err error) {
	var s store.Store = memory.New()
	if sc.durable {
		kept, err := bolt.Open(b.path("records"), bolt.Options{})
		if err != nil {
			return insideResult{}, err
		}
		defer func() { _ = kept.Close() }()
		s = kept
	}
	h, err := ours.New(s, sc.log())
	if err != nil {
		return insideResult{}, err
	}
	return insideOf(h, sc, long)
}

func insideOf(h http.Handler, sc scenario, long time.Duration) (insideResult, error) {
	l, err := sc.load(func(s wire.Shot) ([]byte, error) { return answer(h, s) })
	if err != nil {
		return insideResult{}, err
	}
	runtime.GC() // collects the garbage of what ran before
	return inside(h, sc.batch, long, l)
}

// loopback compares the processes. Only one of them runs at a time.
func (b *bench) loopback() (*section, error) {
	out := &section{heading: fmt.Sprintf("Over loopback, %d clients at once, each broker a process of its own", b.clients)}
	for _, sc := range scenarios {
		if sc.silent {
			continue
		}
		one := func(start func() (*process, error)) func() (loadResult, error) {
			return func() (loadResult, error) {
				p, err := start()
				if err != nil {
					return loadResult{}, err
				}
				defer p.kill()
				l, err := sc.load(func(s wire.Shot) ([]byte, error) { return ask(p.address, s) })
				if err != nil {
					return loadResult{}, err
				}
				return drive(p.address, b.clients, b.measured/4, b.measured, l)
			}
		}
		mine := b.startAlone
		if sc.durable {
			mine = func() (*process, error) { return b.startLongshore(b.path("data")) }
		}
		err := alternate(b.rounds, one(mine), one(b.startPeer), func(mine, other loadResult) {
			out.add(sc.name, "requests/s", mine.perSecond, other.perSecond)
			out.add(sc.name, "median, microseconds", microseconds(mine.median), microseconds(other.median))
			out.add(sc.name, "p99, microseconds", microseconds(mine.p99), microseconds(other.p99))
		})
		if err != nil {
			return nil, fmt.Errorf("%s, over loopback: %w", sc.name, err)
		}
	}
	return out, nil
}

// together compares durable provisions by many clients with those by one: commits that wait for the
// disk at the same time share one write.
func (b *bench) together() (*section, error) {
	out := &section{heading: "Durable provisions over loopback, by the number of clients", mine: "these", theirs: "one client"}
	by := func(clients int) func() (loadResult, error) {
		return func() (loadResult, error) {
			p, err := b.startLongshore(b.path("data"))
			if err != nil {
				return loadResult{}, err
			}
			defer p.kill()
			l, err := provisions(nil)
			if err != nil {
				return loadResult{}, err
			}
			return drive(p.address, clients, b.measured/4, b.measured, l)
		}
	}
	for _, clients := range []int{16, 64} {
		name := fmt.Sprintf("%d clients", clients)
		err := alternate(b.rounds, by(clients), by(1), func(many, one loadResult) {
			out.add(name, "provisions/s", many.perSecond, one.perSecond)
			out.add(name, "median, milliseconds", milliseconds(many.median), milliseconds(one.median))
			out.add(name, "p99, milliseconds", microseconds(many.p99)/1e3, microseconds(one.p99)/1e3)
		})
		if err != nil {
			return nil, fmt.Errorf("durable provisions by %s: %w", name, err)
		}
	}
	return out, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func (b *bench) startLongshore(data string) (*process, error) {
	return start(b.longshore, func(address string) []string { return []string{"serve", "--listen", address, "--data", data} })
}

func (b *bench) startAlone() (*process, error) {
	return start(b.alone, func(address string) []string { return []string{address} })
}

func (b *bench) startPeer() (*process, error) {
	return start(b.peer, func(address string) []string { return []string{address, b.catalog} })
}

// starts compares how long brokers take to start. Each is started twice per round: a start takes
// little time, and varies much.
func (b *bench) starts() (*section, error) {
	out := &section{heading: "From the process's start to its first answer, and its memory then"}
	again := b.path("data")
	first, err := b.startLongshore(again)
	if err != nil {
		return nil, err
	}
	first.kill()
	for _, how := range []struct {
		name string
		mine func() (*process, error)
	}{
		{"longshore serve, folder that is there", func() (*process, error) { return b.startLongshore(again) }},
		{"longshore serve, new folder", func() (*process, error) { return b.startLongshore(b.path("data")) }},
		{"handler alone (nothing on disk)", b.startAlone},
	} {
		measured := func(start func() (*process, error)) func() (*process, error) {
			return func() (*process, error) {
				p, err := start()
				if err == nil {
					p.kill()
				}
				return p, err
			}
		}
		err := alternate(2*b.rounds, measured(how.mine), measured(b.startPeer), func(mine, other *process) {
			out.add(how.name, "milliseconds", milliseconds(mine.started), milliseconds(other.started))
			out.add(how.name, "resident MB", mine.resident/1e6, other.resident/1e6)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", how.name, err)
		}
	}
	return out, nil
}

// profiles writes processor profiles of our handler.
func (b *bench) profiles() error {
	if err := os.MkdirAll(b.profile, 0o700); err != nil {
		return err
	}
	for i, sc := range scenarios {
		f, err := os.Create(filepath.Join(b.profile, fmt.Sprintf("%d.pprof", i)))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return errors.Join(err, f.Close())
		}
		_, err = b.insideOurs(sc, 10*b.long)
		pprof.StopCPUProfile()
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s, profiled: %w", sc.name, err)
		}
	}
	return nil
}
