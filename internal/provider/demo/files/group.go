package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/longshore/longshore/internal/provider/demo"
)

// A change waits for the disk, and the disk takes hardly longer for a few files at
// once than for one. So changes that arrive while others are made are made together:
// whoever has the next turn makes those that wait by then.

// groupSize is how many changes are made together at most. Hazard: in an embedded
// broker, requests wait for the same disk. With 16 or 64, far more things were made
// while many clients sent requests, and half as many requests were answered.
const groupSize = 4

// A change is one call of Create, Replace or Delete.
type change struct {
	thing *demo.Thing // what is to be written; nil if nothing is
	path  string      // of the thing
	// put decides whether the change may be made, and makes it: it gives the whole
	// file tmp the thing's path.
	put    func(tmp, path string) error
	tmp    string // the file as long as it is to be removed
	err    error
	answer chan error // holds one
}

// A queue holds the changes that wait, in the order in which they came.
type queue struct {
	mu      sync.Mutex
	waiting []*change
}

func (q *queue) join(c *change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, c)
}

// leave takes a change out of the queue, and reports false if it is in a group.
func (q *queue) leave(c *change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// group takes out what is to be made now.
func (q *queue) group() []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), groupSize)
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// change makes a change of the thing of that name. It returns the context's error
// only if nothing was changed.
func (f *Folder) change(ctx context.Context, doing, name string, t *demo.Thing, put func(tmp, path string) error) error {
	err := checkName(name)
	if err == nil {
		err = f.wait(ctx, &change{thing: t, path: f.path(name), put: put, answer: make(chan error, 1)})
	}
	if err != nil {
		return fmt.Errorf("%s thing %q: %w", doing, name, err)
	}
	return nil
}

// wait returns once the change is made, by this caller or by another. Hazard:
// whoever waits for the system's lock keeps a thread, so only who has the turn does.
func (f *Folder) wait(ctx context.Context, c *change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.queue.join(c)
	select {
	case err := <-c.answer:
		return err
	case f.turn <- struct{}{}:
		for len(c.answer) == 0 {
			f.makeGroup()
		}
		<-f.turn
	case <-ctx.Done():
		if f.queue.leave(c) {
			return ctx.Err()
		}
	}
	return <-c.answer
}

// makeGroup makes the changes that wait, and answers each after the disk has all
// of them. A refusal is answered then, too: what it is about may be a change of
// the same group.
func (f *Folder) makeGroup() {
	unlock, err := f.lock()
	group := f.queue.group()
	if err == nil {
		err = f.makeAll(group)
		unlock()
	}
	for _, c := range group {
		if err != nil {
			c.err = err
		}
		c.answer <- c.err
	}
}

// makeAll writes the files of all changes at once, since the disk shares its work,
// and then makes one change after another.
func (f *Folder) makeAll(group []*change) error {
	var all sync.WaitGroup
	for _, c := range group {
		all.Go(func() { f.write(c) })
	}
	all.Wait()
	for _, c := range group {
		f.finish(c)
	}
	return syncFolder(f.dir)
}

// write makes the change's file, whole and on the disk, which is not yet a thing.
// Hazard: without the lock, others take the file for what a crash has left.
func (f *Folder) write(c *change) {
	if c.thing == nil {
		return
	}
	var body []byte
	if body, c.err = json.MarshalIndent(c.thing, "", "  "); c.err != nil {
		return
	}
	var tmp *os.File
	if tmp, c.err = os.CreateTemp(f.dir, leftover+"*"); c.err != nil { // of mode 0600
		return
	}
	c.tmp = tmp.Name()
	_, c.err = tmp.Write(append(body, '\n'))
	if c.err == nil {
		c.err = tmp.Sync()
	}
	if err := tmp.Close(); c.err == nil {
		c.err = err
	}
}

// finish makes a change whose file is written, and leaves no file behind.
func (f *Folder) finish(c *change) {
	if c.err == nil {
		c.err = c.put(c.tmp, c.path)
	}
	if c.tmp == "" {
		return
	}
	// After a rename there is nothing to remove.
	if err := os.Remove(c.tmp); c.err == nil && !errors.Is(err, fs.ErrNotExist) {
		c.err = err
	}
}
