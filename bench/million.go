package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/wire"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// original is the id in the record from which all others are copied.
const original = "8f14a7c2-5f4e-4b6a-9c55-000000000000"

func copied(i int) string { return fmt.Sprintf("8f14a7c2-5f4e-4b6a-9c55-%012d", i) }

// million compares a folder with many instances and one with few: the start, the memory, and requests after the start.
func (b *bench) million() (*section, error) {
	out := &section{
		heading: fmt.Sprintf("A data folder of %d instances, and one of 100", b.instances),
		mine:    fmt.Sprint(b.instances), theirs: "100",
	}
	many, err := b.filled(b.instances)
	if err != nil {
		return nil, fmt.Errorf("making a folder of %d instances: %w", b.instances, err)
	}
	few, err := b.filled(100)
	if err != nil {
		return nil, fmt.Errorf("making a small folder: %w", err)
	}
	err = alternate(b.rounds,
		func() (opened, error) { return b.opened(many, b.instances) },
		func() (opened, error) { return b.opened(few, 100) },
		func(mine, other opened) {
			for i, m := range mine {
				out.add(m.what, m.unit, m.value, other[i].value)
			}
		})
	return out, err
}

// filled makes a data folder with the given number of instances, all ready.
func (b *bench) filled(instances int) (dir string, err error) {
	dir = b.path("filled")
	p, err := b.startLongshore(dir)
	if err != nil {
		return "", err
	}
	shot, err := ready(p.address)
	if err == nil {
		_, err = ask(p.address, shot)
	}
	p.kill()
	if err != nil {
		return "", fmt.Errorf("making the first record: %w", err)
	}
	s, err := bolt.Open(filepath.Join(dir, "longshore.db"), bolt.Options{})
	if err != nil {
		return "", err
	}
	return dir, errors.Join(multiply(s, instances), s.Close())
}

// multiply copies the original, which the store must hold, until there are as many instances.
func multiply(s *bolt.Store, instances int) error {
	page, err := s.Scan(context.Background(), "")
	if err != nil {
		return err
	}
	var first []store.Record // the instance, and its item of the directory
	for _, r := range page.Records {
		if strings.HasSuffix(r.Partition, original) && r.Sort == "INSTANCE" || strings.HasSuffix(r.Sort, original) {
			first = append(first, r)
		}
	}
	if len(first) != 2 {
		return fmt.Errorf("the first instance has %d records, not 2", len(first))
	}
	return fill(s, first, instances)
}

// ready returns a request that provisions the original, with a plan that is done at once.
func ready(address string) (wire.Shot, error) {
	s := wire.Provision(original)
	body, err := ask(address, wire.Catalog())
	if err != nil {
		return s, err
	}
	var catalog struct {
		Services []struct {
			ID    string
			Plans []struct{ ID, Name string }
		}
	}
	if err := json.Unmarshal(body, &catalog); err != nil {
		return s, err
	}
	for _, o := range catalog.Services {
		for _, p := range o.Plans {
			if o.ID == wire.Service && p.Name == "sync" {
				s.Body = strings.Replace(strings.Replace(s.Body, wire.Plan, p.ID, 1),
					`"parameters":{"delay_seconds":86400},`, "", 1)
				s.Want = http.StatusCreated
				return s, nil
			}
		}
	}
	return s, errors.New("the demo has no plan sync")
}

// fill commits copies of an instance, many at a time.
func fill(s *bolt.Store, instance []store.Record, instances int) error {
	each := store.MaxChanges / len(instance)
	next := make(chan int)
	errs := make(chan error, 64)
	var all sync.WaitGroup
	for range cap(errs) {
		all.Go(func() {
			var failed error
			for first := range next {
				var changes []store.Change
				for i := first; i < min(first+each, instances); i++ {
					for _, c := range instance {
						c.Version = 0
						c.Partition = strings.ReplaceAll(c.Partition, original, copied(i))
						c.Sort = strings.ReplaceAll(c.Sort, original, copied(i))
						c.Body = bytes.ReplaceAll(c.Body, []byte(original), []byte(copied(i)))
						changes = append(changes, store.Put(c))
					}
				}
				if failed == nil {
					failed = s.Commit(context.Background(), changes...)
				}
			}
			errs <- failed
		})
	}
	for first := 1; first < instances; first += each {
		next <- first
	}
	close(next)
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// opened has the measurements of a start over a folder.
type opened []struct {
	what, unit string
	value      float64
}

func (b *bench) opened(dir string, instances int) (out opened, err error) {
	add := func(what, unit string, value float64) {
		out = append(out, struct {
			what, unit string
			value      float64
		}{what, unit, value})
	}
	p, err := b.startLongshore(dir)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	add("start to the first answer", "milliseconds", milliseconds(p.started))
	add("memory at the first answer", "resident MB", p.resident/1e6)
	began := time.Now()
	add("memory of the check at the start", "MB of its own", child(p.cmd.Process.Pid)/1e6)
	add("the check at the start", "milliseconds", microseconds(time.Since(began))/1e3)
	const asked = 2000
	c, err := dial(p.address)
	if err != nil {
		return nil, err
	}
	defer c.close()
	began = time.Now()
	for i := range asked {
		shot := wire.LastOperation(copied(1+(i*7919)%(instances-1)), "")
		if _, err := c.send(shot.Bytes(), shot.Want, false); err != nil {
			return nil, err
		}
	}
	add("a poll, each of another record", "microseconds", microseconds(time.Since(began))/asked)
	began = time.Now()
	list := exec.Command(b.longshore, "instances", "--data", dir, copied(1))
	if out, err := list.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("listing: %w: %s", err, out)
	}
	add("longshore instances ID", "milliseconds", microseconds(time.Since(began))/1e3)
	memory, err := resident(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	add("memory after that", "resident MB", memory/1e6)
	p.kill()
	began = time.Now()
	check := exec.Command(b.longshore, "fsck", "--data", dir)
	// A copied record has the secrets of the original, which do not open under another id.
	if out, err := check.CombinedOutput(); err != nil && !strings.Contains(string(out), "does not open") {
		return nil, fmt.Errorf("checking the folder: %w: %s", err, out)
	}
	add("longshore fsck", "milliseconds", microseconds(time.Since(began))/1e3)
	return out, nil
}
