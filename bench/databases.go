package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longshore/longshore/bench/wire"
)

// The ids of the offering postgres and its plan small, which never change once they are published.
const (
	postgresID = "0f0a3c1e-5e0b-4c39-9d5a-6d1f7c1b7a10"
	smallID    = "2f4a0a52-0d8f-4b6f-8d4e-1b3c52a6f1d1"
	// databasesEach is the number of databases per round: few enough for any disk.
	databasesEach = 16
)

// databases measures real databases, on the broker's own PostgreSQL.
func (b *bench) databases() (_ *section, err error) {
	out := &section{
		heading: fmt.Sprintf("Databases on the broker's own PostgreSQL, %d in each round, each answered when it is there",
			databasesEach),
		mine: "16 clients", theirs: "1 client",
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { // if root runs this, the server runs as another user
		return nil, err
	}
	data := b.path("data")
	p, err := start(b.longshore, func(address string) []string {
		return []string{"serve", "--listen", address, "--data", data, "--postgres", "embedded"}
	})
	if err != nil {
		return nil, err
	}
	defer func() { // the broker stops the server
		_ = p.cmd.Process.Signal(syscall.SIGINT)
		<-p.ended
	}()
	server, err := postmaster(data)
	if err != nil {
		return nil, fmt.Errorf("there is no PostgreSQL: run make postgres: %w", err)
	}
	round := 0
	one := func(clients int) func() (lifeRates, error) {
		return func() (lifeRates, error) {
			round++
			return lives(p, server, clients, round)
		}
	}
	err = alternate(b.rounds, one(16), one(1), func(mine, other lifeRates) {
		for i, m := range mine {
			out.add(m.what, m.unit, m.value, other[i].value)
		}
	})
	return out, err
}

type lifeRates []struct {
	what, unit string
	value      float64
}

// lives makes databases with a binding each, removes the bindings, and removes the databases.
func lives(p *process, server, clients, round int) (out lifeRates, err error) {
	instance := func(i int) string { return fmt.Sprintf("/v2/service_instances/bench-%d-%d", round, i) }
	binding := func(i int) string { return fmt.Sprintf("%s/service_bindings/bench-%d-%d", instance(i), round, i) }
	ids := `"service_id":"` + postgresID + `","plan_id":"` + smallID + `"`
	hints := "?service_id=" + postgresID + "&plan_id=" + smallID
	for _, step := range []struct {
		what string
		shot func(i int) wire.Shot
	}{
		{"provision", func(i int) wire.Shot {
			return wire.Shot{Method: http.MethodPut, Path: instance(i), Want: http.StatusCreated,
				Body: "{" + ids + `,"organization_guid":"o","space_guid":"s"}`}
		}},
		{"bind", func(i int) wire.Shot {
			return wire.Shot{Method: http.MethodPut, Path: binding(i), Body: "{" + ids + "}", Want: http.StatusCreated}
		}},
		{"unbind", func(i int) wire.Shot {
			return wire.Shot{Method: http.MethodDelete, Path: binding(i) + hints, Want: http.StatusOK}
		}},
	} {
		broker, engine := busy(p.cmd.Process.Pid), busy(server)
		began := time.Now()
		if err := eachOf(databasesEach, clients, func(i int) error {
			return request(p.address, step.shot(i))
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
		took := time.Since(began)
		broker, engine = busy(p.cmd.Process.Pid)-broker, busy(server)-engine
		out = append(out, lifeRates{
			{step.what, "a second", databasesEach / took.Seconds()},
			{step.what, "% of the time is the server's", 100 * engine / max(broker+engine, 1)},
		}...)
	}
	return out, eachOf(databasesEach, clients, func(i int) error { return remove(p.address, instance(i), hints) })
}

// remove deletes a database, without measuring that: the database disappears once the server has flushed its writes.
func remove(address, instance, hints string) error {
	err := request(address, wire.Shot{Method: http.MethodDelete, Path: instance + hints + "&accepts_incomplete=true",
		Want: http.StatusAccepted})
	for range removeLooks {
		if err != nil {
			return err
		}
		gone := wire.Shot{Method: http.MethodGet, Path: instance, Want: http.StatusNotFound}
		if request(address, gone) == nil {
			return nil
		}
		time.Sleep(removePause)
	}
	return fmt.Errorf("%s is not gone", instance)
}

const (
	removeLooks = 1200
	removePause = 100 * time.Millisecond
)

// patient waits longer than the other clients here.
var patient = http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

func request(address string, s wire.Shot) error {
	r, err := http.NewRequest(s.Method, "http://"+address+s.Path, strings.NewReader(s.Body))
	if err != nil {
		return err
	}
	r.SetBasicAuth(wire.Username, wire.Password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	answer, err := patient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != s.Want {
		err = fmt.Errorf("status %d, want %d: %s", answer.StatusCode, s.Want, body)
	}
	return err
}

// eachOf calls do for each database, with a number of clients in parallel.
func eachOf(databases, clients int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range databases {
		next <- i
	}
	close(next)
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// postmaster returns the id of the server's main process.
func postmaster(data string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	return strconv.Atoi(first)
}

// busy returns the processor time of a process and the processes that it started, in ticks of the system.
func busy(pid int) (ticks float64) {
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(raw, []byte(") "))
		// state, parent, and from the twelfth field on, times: user, system, and those of children that have ended
		f := strings.Fields(string(rest))
		if len(f) < 15 {
			continue
		}
		parent := strconv.Itoa(pid)
		switch {
		case filepath.Base(filepath.Dir(path)) == parent:
			ticks += sum(f[11:15])
		case f[1] == parent:
			ticks += sum(f[11:13])
		}
	}
	return ticks
}

func sum(texts []string) (total float64) {
	for _, text := range texts {
		n, _ := strconv.ParseFloat(text, 64)
		total += n
	}
	return total
}
