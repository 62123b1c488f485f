package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// A Change is one part of a commit. The zero Change changes nothing.
type Change struct {
	stored store.Change // the record is still without its body
	body   any          // a pointer to the value to write, or to the value that was read before a deletion
}

// PutFormer writes the record of a former life beside the record of the id; nil needs no
// change. It replaces a record that is already there.
func PutFormer(ctx context.Context, records interface {
	Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error)
}, former *lifecycle.Record, now time.Time) (Change, error) {
	if former == nil {
		return Change{}, nil
	}
	there, err := records.Record(ctx, former.Key, now)
	former.Version = there.Version
	return Put(*former), err
}

// lookUpTimeout bounds the look-up of a commit whose answer was lost. It applies even after the
// commit's own time is over.
const lookUpTimeout = 2 * time.Second

// Commit applies all changes or none. ErrConflict means that nothing was written because a record had
// changed. After any other error it is unknown whether the changes were written. Such errors are rare:
// if the answer to a commit is lost, Commit looks the result up before it reports an error.
//
// With a record, Commit writes what follows from its change: its item of the directory, the former life
// that a new one has set aside, the operation that another one has replaced, and the entry of an operation
// that has ended.
func (l *Ledger) Commit(ctx context.Context, changes ...Change) error {
	writer := l.newID()
	var batch []store.Change
	var mine store.Record // one of the records that this commit writes, by which it is recognised
	var written []*decoded
	changes, err := l.beside(ctx, changes)
	if err != nil {
		return fmt.Errorf("reading what the changes replace: %w", err)
	}
	for _, c := range changes {
		r := &c.stored.Record
		if r.Key == (store.Key{}) {
			continue
		}
		if c.stored.Action == store.ActionPut {
			if r.Body, err = encode(c.body); err != nil {
				return fmt.Errorf("encoding record %q: %w", r.Sort, err)
			}
			r.Writer, r.Schema = writer, Schema
			mine = *r
			if record, is := c.body.(*lifecycle.Record); is {
				next := *r
				next.Version++
				written = append(written, decodedAt(next, *record))
			}
		}
		batch = append(batch, c.stored)
	}
	if len(batch) == 0 {
		return nil
	}
	err = l.store.Commit(ctx, batch...)
	if err == nil {
		l.memory.keep(written...)
	}
	if err == nil || errors.Is(err, store.ErrInvalid) || mine.Writer == "" {
		return err
	}
	// Either the answer was lost, or a repetition inside the store met the version that the first try had written.
	lookUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	stored, readErr := l.store.Get(lookUp, mine.Key)
	if readErr == nil && stored.Version == mine.Version+1 && stored.Writer == writer {
		return nil
	}
	return err
}
