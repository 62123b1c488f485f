package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/longshore/longshore/internal/store"
)

// A commit waits for the disk, and the disk takes as long for one set of changes
// as for many. So commits that arrive while another one waits are written
// together: whoever may write next writes all sets that wait by then.
//
// bbolt's own Batch runs all of them again when one fails, and here conflicts
// are normal.

// A group ends at either of these, so that no commit waits for long behind it.
const (
	groupSets  = 256
	groupBytes = 8 << 20
)

// A set is the changes of one commit.
type set struct {
	ctx     context.Context // once it ends, a set that still waits is not written
	changes []store.Change
	answer  chan error // holds one
}

func (s *set) bytes() int {
	n := 0
	for _, c := range s.changes {
		n += len(c.Record.Body)
	}
	return n
}

// A queue holds the sets that wait, in the order in which they came.
type queue struct {
	mu   sync.Mutex
	sets []*set
}

func (q *queue) join(s *set) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sets = append(q.sets, s)
}

// leave takes a set out of the queue, and reports false if it is in a group.
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

// group takes the sets out that are to be written now; none if none waits.
func (q *queue) group() []*set {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.sets) && n < groupSets && (n == 0 || bytes+q.sets[n].bytes() <= groupBytes) {
		bytes += q.sets[n].bytes()
		n++
	}
	group := slices.Clone(q.sets[:n])
	q.sets = slices.Delete(q.sets, 0, n)
	return group
}

// commit returns the context's error only if nothing was changed.
func (s *Store) commit(ctx context.Context, changes []store.Change) error {
	if !writes(changes) {
		return s.view(ctx, func(b buckets) error { return b.require(changes) })
	}
	mine := &set{ctx: ctx, changes: changes, answer: make(chan error, 1)}
	s.queue.join(mine)
	for {
		select {
		case err := <-mine.answer:
			return err
		case s.writing <- struct{}{}:
			s.writeGroup()
			<-s.writing
		case <-ctx.Done():
			if s.queue.leave(mine) {
				return ctx.Err()
			}
			return <-mine.answer // being written: it is soon known what came of it
		}
	}
}

// errNothing rolls a group back in which there was nothing to write.
var errNothing = errors.New("nothing to write")

// writeGroup writes the sets that wait, in one transaction, and answers each
// after the disk has it. A conflict is answered then, too: it may be one with
// a set of the same group. If the transaction fails, nobody knows what of it is
// on the disk, and all are told so.
func (s *Store) writeGroup() {
	group := s.queue.group()
	if len(group) == 0 {
		return
	}
	answers := make([]error, len(group))
	committed, err := s.within(s.db.Update, func(b buckets) error {
		// bbolt writes into whatever it takes for free, so we look again.
		if _, _, err := checkHead(s.file, s.db.Info().PageSize); err != nil {
			return err
		}
		if err := b.applyAll(group, answers); err != nil || s.clock == nil {
			return err
		}
		return b.note(s.clock())
	})
	switch {
	case err == nil:
		s.latest.Store(committed)
	case errors.Is(err, errNothing):
		err = nil
	}
	for i, set := range group {
		if err != nil {
			answers[i] = err
		}
		set.answer <- answers[i]
	}
}

// applyAll makes the changes of each set that the sets before it allow, each
// whole or not at all, and says what became of each.
func (b buckets) applyAll(group []*set, answers []error) error {
	tally, err := b.number(tallyKey)
	if err != nil {
		return err
	}
	written := false
	for i, set := range group {
		if answers[i] = set.ctx.Err(); answers[i] != nil {
			continue
		}
		if answers[i] = b.require(set.changes); answers[i] != nil {
			continue
		}
		more, err := b.apply(set.changes)
		if err != nil {
			return err
		}
		tally += more
		written = true
	}
	if !written {
		return errNothing
	}
	return b.about.Put(tallyKey, binary.BigEndian.AppendUint64(nil, tally))
}

// writes reports whether any of the changes changes something.
func writes(changes []store.Change) bool {
	return slices.ContainsFunc(changes, func(c store.Change) bool { return c.Action != store.ActionCheck })
}
