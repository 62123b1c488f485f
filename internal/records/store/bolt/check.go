package bolt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

// A Result is what Check or Salvage found in a file.
type Result struct {
	Identity string
	Records  int
	Damage
}

const (
	// envChecks names the file, in the environment of the child process that checks it.
	envChecks = "LONGSHORE_CHECKS"
	// A child may take shortestCheck, plus a second for each checkSpeed bytes of the file: a
	// check that takes longer will never end.
	shortestCheck = time.Minute
	checkSpeed    = 1 << 20
	// A child may use checkMemory plus an eighth of the file's size, and checkStack of that for
	// its stack: on a damaged page, bbolt's check may use memory without end.
	checkMemory = 128 << 20
	checkStack  = 64 << 20
)

// Check reads everything in the file at path. It proves that each page is used once and in its
// place (which is bbolt's own check), that each record is as it was written and none is
// missing, and that the due index agrees with the records. It changes nothing. A child process
// does the work, which is this program again: see BeChecker. If the child dies or takes too
// long, that counts as damage.
//
// It fails if there is nothing to judge: with ErrLocked, ErrMissing, ErrNewer, the context's
// error, or one of the operating system's.
func Check(ctx context.Context, path string) (Result, error) {
	return check(ctx, path, func() {})
}

// Check does the same for an open store. Commits wait until the child has opened the file; a
// commit that needs more of the file mapped waits until the child has ended. Once damage was
// found, each commit fails with ErrDamaged.
func (s *Store) Check(ctx context.Context) (r Result, err error) {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return r, ctx.Err()
	}
	release := sync.OnceFunc(func() { <-s.writing })
	defer release()
	_, err = s.within(s.db.View, func(*content) error { // the transaction keeps commits from overwriting what the child reads
		r, err = check(ctx, s.path, release)
		return err
	})
	if r.Wrong > 0 {
		s.spoilt.Store(true)
	}
	return r, err
}

// A line is one line of JSON that a child writes.
type line struct {
	Open    bool    `json:"open,omitempty"` // the child's transaction has begun
	Problem string  `json:"problem,omitempty"`
	Fault   string  `json:"fault,omitempty"` // there was nothing to judge
	Kind    int     `json:"kind,omitempty"`  // the fault's index in faults
	Result  *Result `json:"result,omitempty"`
}

// faults are the errors that keep their identity when a child reports them.
var faults = []error{errors.New("no fault of ours"), ErrLocked, ErrMissing, ErrNewer}

func check(ctx context.Context, path string, open func()) (r Result, err error) {
	defer while(&err, "checking store %q", path)
	info, err := os.Stat(path)
	if err = usable(info, err); err == nil {
		r, err = runChild(ctx, path, info.Size(), open)
	}
	err = past(err, r.leaveOut)
	return r, err
}

// runChild runs a child to its end, and calls open once the child has begun to read.
func runChild(ctx context.Context, path string, size int64, open func()) (r Result, err error) {
	program, err := os.Executable()
	if err == nil && os.Getenv(envChecks) != "" {
		err = errors.New("this program lacks its call of BeChecker") // each child would start another
	}
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, shortestCheck+time.Duration(size/checkSpeed)*time.Second)
	defer cancel()
	child := exec.CommandContext(limited, program)
	child.Env = append(os.Environ(), envChecks+"="+path)
	alive, err := child.StdinPipe() // the pipe ends with this process
	if err != nil {
		return r, err
	}
	defer alive.Close()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return r, err
	}
	result, err := hear(out, &r.Damage, open)
	died := child.Wait()
	switch {
	case result != nil:
		r.Identity, r.Records = result.Identity, result.Records
		return r, nil
	case err != nil:
		return r, err
	case ctx.Err() != nil:
		return r, ctx.Err()
	case limited.Err() != nil:
		return r, damaged("a check of all has not ended in time")
	default: // the child's message may quote the file's content
		return r, damaged("a check of all has died: %v", died)
	}
}

// hear reads the child's lines; the result is nil if the child has died.
func hear(out io.Reader, found *Damage, open func()) (*Result, error) {
	for lines := json.NewDecoder(bufio.NewReader(out)); ; {
		var l line
		switch err := lines.Decode(&l); {
		case err != nil:
			return nil, nil
		case l.Open:
			open()
		case l.Problem != "":
			found.Add(damaged("%s", l.Problem))
		case l.Kind > 0 && l.Kind < len(faults):
			return nil, faults[l.Kind]
		case l.Fault != "":
			return nil, errors.New(l.Fault)
		case l.Result != nil:
			return l.Result, nil
		}
	}
}

// BeChecker does nothing in a process that Check has not started. In a process that Check has
// started, it checks the file and ends the process. Each program that calls Check must call
// BeChecker first, before anything that has an effect.
func BeChecker() {
	path := os.Getenv(envChecks)
	if path == "" {
		return
	}
	debug.SetMaxStack(checkStack)
	go limitMemory(path)
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	go func() { // the parent has ended: no process is to wait for the child's lock
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	say := json.NewEncoder(os.Stdout).Encode
	c := &checker{say: func(l line) {
		if say(l) != nil {
			os.Exit(1)
		}
	}}
	if err := past(c.file(path), c.problem); err != nil {
		l := line{Fault: err.Error()}
		for i, fault := range faults {
			if errors.Is(err, fault) {
				l.Kind = i
			}
		}
		c.say(l)
	}
	c.say(line{Result: &c.result})
	os.Exit(0)
}

// limitMemory ends the process when it has taken more memory than a check needs.
func limitMemory(path string) {
	limit := uint64(checkMemory)
	if info, err := os.Stat(path); err == nil {
		limit += uint64(info.Size() / 8)
	}
	for range time.Tick(20 * time.Millisecond) {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.Sys > limit {
			os.Exit(1)
		}
	}
}

// A checker is one check, in the child process.
type checker struct {
	say    func(line)
	result Result
	wrong  int // problems were found
	due    int // how many more records are due than the index lists
}

// problem reports damage.
func (c *checker) problem(err error) error {
	c.wrong++
	c.say(line{Problem: strings.TrimSuffix(err.Error(), ": "+ErrDamaged.Error())})
	return nil
}

func (c *checker) file(path string) error {
	// Read the list of free pages now: later it would not be that of the transaction.
	db, file, err := openFile(path, bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return err
	}
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	c.say(line{Open: true})
	if err := checkHead(file, int64(db.Info().PageSize)); err != nil {
		return err
	}
	for problem := range tx.Check() {
		_ = c.problem(damaged("%v", problem))
		if c.wrong == mostProblems { // a page that leads back to itself gives problems without end
			return nil
		}
	}
	_, err = recovered(func() error { return c.content(tx) })
	return err
}

// content reads and proves all entries.
func (c *checker) content(tx *bbolt.Tx) error {
	in, err := contentOf(tx)
	if err != nil {
		return err
	}
	about, err := in.about()
	if err != nil {
		return err
	}
	c.result.Identity = about.identity
	index, err := in.due()
	if err != nil {
		return err
	}
	var tally uint64
	for _, of := range []struct {
		chain
		entry func(key, value []byte) error
	}{
		{in.records, func(k, v []byte) error { return c.record(index, k, v) }},
		{index, func([]byte, []byte) error { c.due--; return nil }},
	} {
		err := of.walk(first, func(k, v []byte) (bool, error) {
			err := proven(k, v)
			if err == nil {
				tally += sumOf(v)
				err = of.entry(k, v)
			}
			return true, err
		}, c.problem)
		if err != nil {
			return err
		}
		tally += sumOf(of.Get(origin)) // the walk has proven it
	}
	switch {
	case c.wrong > 0: // missing entries are reported already
	case c.due != 0:
		return damaged("the due index and the records disagree")
	case tally != about.tally:
		return damaged("a page is older than the rest: records are missing, or as they were before")
	}
	return nil
}

func (c *checker) record(index chain, key, value []byte) error {
	r, err := decode(key, value)
	if err != nil {
		return err
	}
	c.result.Records++
	due, ok := store.Milliseconds(r.Due)
	if !ok {
		return nil
	}
	c.due++
	_, err = index.listed(due, key)
	return err
}
