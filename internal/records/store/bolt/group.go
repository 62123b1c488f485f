package bolt

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// A commit waits for the disk, and the disk takes as long for one set of changes as for many.
// So commits that arrive while another one waits are written together: the next writer writes
// all sets that wait by then.
//
// This package does not use bbolt's own Batch, which runs all sets again when one fails: here conflicts are normal.

// A group ends at either of these limits, so that no commit waits for long behind it.
const (
	groupSets  = 256
	groupBytes = 8 << 20
	// mostEmptied is more than the number of leaves that a group can empty.
	mostEmptied = 2 * groupSets * store.MaxChanges
)

// A set holds the changes of one commit.
type set struct {
	ctx     context.Context // once it ends, a set that still waits is not written
	changes []store.Change
	answer  chan error // has room for one answer
	fault   error      // the damage that was met while the changes were made
}

func (s *set) bytes() int {
	n := 0
	for _, c := range s.changes {
		n += len(c.Record.Body)
	}
	return n
}

// A queue holds the waiting sets, in the order in which they arrived.
type queue struct {
	mu   sync.Mutex
	sets []*set
}

func (q *queue) join(s *set) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sets = append(q.sets, s)
}

// leave takes a set out of the queue. It reports false if the set is in a group already.
func (q *queue) leave(s *set) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.sets, s)
	if i < 0 {
		return false
	}
	q.sets = slices.Delete(q.sets, i, i+1)
	return true
}

// group takes the sets to be written now out of the queue; none if no set waits. First it lets everything else run
// as long as more sets arrive: a large group costs the processors little more than a small one.
func (q *queue) group() []*set {
	q.mu.Lock()
	defer q.mu.Unlock()
	for seen := 0; seen < len(q.sets) && len(q.sets) < groupSets; {
		seen = len(q.sets)
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
	n, bytes := 0, 0
	for n < len(q.sets) && n < groupSets && (n == 0 || bytes+q.sets[n].bytes() <= groupBytes) {
		bytes += q.sets[n].bytes()
		n++
	}
	group := q.sets[:n:n]
	q.sets = q.sets[n:]
	return group
}

// commit returns the context's error only if nothing was changed. If the context ends while the
// disk is at work on the set, the caller does not wait for the disk.
func (s *Store) commit(ctx context.Context, changes []store.Change) error {
	mine := &set{ctx: ctx, changes: changes, answer: make(chan error, 1)}
	s.queue.join(mine)
	for {
		select {
		case err := <-mine.answer:
			return err
		case s.writing <- struct{}{}:
			go func() {
				for s.writeGroup() {
				}
				<-s.writing
			}()
		case <-ctx.Done():
			if s.queue.leave(mine) {
				return ctx.Err()
			}
			select {
			case err := <-mine.answer:
				return err
			default:
				return ErrUnknown
			}
		}
	}
}

// These errors roll a group back.
var (
	errNothing = errors.New("nothing to write")
	// errAgain says that a set met damage midway, and that the others are to be written without it.
	errAgain = errors.New("damage midway")
)

// writeGroup writes the waiting sets in one transaction, and answers each of them once it is on
// the disk. A conflict is answered only then too, since it may be a conflict with a set of the
// same group. If the transaction fails, it is unknown how much of it is on the disk, and every
// set gets that answer. It reports false if no set waits.
func (s *Store) writeGroup() bool {
	group := s.queue.group()
	if len(group) == 0 {
		return false
	}
	answers := make([]error, len(group))
	applied := false
	write := func(c *content) (err error) {
		if err = s.checkHead(); err == nil {
			err = c.applyAll(group, answers, s.how.Clock)
		}
		if applied = err == nil; applied {
			s.seen.forget(group, int64(c.tx.ID()))
		}
		return err
	}
	committed, err := int64(0), errAgain
	for errors.Is(err, errAgain) {
		committed, err = s.within(s.db.Update, write)
	}
	switch {
	case err == nil:
		s.latest.Store(committed)
	case errors.Is(err, errNothing):
		err = nil
	case applied && !(full(err) && s.before(committed)):
		// After a failed sync, another one proves nothing: the system has forgotten the data that it could not write.
		s.failed.Store(true)
		err = errors.Join(err, ErrDiskFailed)
	}
	for i, set := range group {
		if err != nil {
			answers[i] = err
		}
		set.answer <- answers[i]
	}
	clear(group) // it is a part of the queue's memory, which would keep the sets
	return true
}

// full reports whether the disk refused a commit for lack of space.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// before reports whether the file is as it was before a commit that failed.
func (s *Store) before(committed int64) bool {
	id, err := s.within(s.db.View, func(*content) error { return nil })
	return err == nil && id < committed
}

// applyAll makes the changes of each set that the sets before it allow, each set whole or not
// at all, and fills in the answer to each set.
func (c *content) applyAll(group []*set, answers []error, clock func() time.Time) error {
	about, err := c.about()
	if err != nil {
		return err
	}
	written := false
	for i, set := range group {
		answers[i] = cmp.Or(set.fault, set.ctx.Err())
		if answers[i] == nil {
			answers[i] = c.require(set.changes)
		}
		if answers[i] != nil {
			continue
		}
		if err := c.apply(set.changes); errors.Is(err, ErrDamaged) {
			set.fault = err
			return errAgain
		} else if err != nil {
			return err
		}
		written = true
	}
	if !written {
		return errNothing
	}
	about.tally += c.tally
	if clock != nil { // a clock that has gone back does not move the time back
		about.last = max(about.last, clock().UnixMilli())
	}
	return about.write(c.tx.Bucket(aboutBucket))
}

// writes reports whether any of the changes writes or deletes.
func writes(changes []store.Change) bool {
	return slices.ContainsFunc(changes, func(c store.Change) bool { return c.Action != store.ActionCheck })
}
