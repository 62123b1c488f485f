package worker

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A subject is what a step is about, as it was read: the record of an instance or
// binding, and the records that its operation depends on.
type subject struct {
	at       time.Time          // when it was read
	record   lifecycle.Record   // whose operation the step is of
	instance lifecycle.Record   // that a binding belongs to; of an instance, its own record
	source   lifecycle.Record   // that an instance is restored from
	retained lifecycle.Retained // that an instance is made from by undelete
}

// read reads the subject of a step.
func (w *Worker) read(ctx context.Context, key lifecycle.Key, now time.Time) (s subject, err error) {
	s.at = now
	if s.record, err = w.Records.Record(ctx, key, now); err != nil {
		return s, err
	}
	if key.IsBinding() {
		s.instance, err = w.Records.Record(ctx, key.InstanceKey(), now)
		return s, err
	}
	s.instance = s.record
	if of := s.record.Undeletes; of != nil {
		s.retained, err = w.Records.Retained(ctx, of.Key(key), of.Incarnation)
		return s, err
	}
	if op := s.record.Operation; s.record.InProgress() && op.Source != nil {
		s.source, err = w.Records.Record(ctx, op.Source.Key(key), now)
	}
	return s, err
}

// A standing says whether an operation may go on: a bind depends on the state of
// its instance, a restore on its source. Nothing else depends on either.
type standing int

const (
	free    standing = iota // the instance, or the source, is unchanged and ready
	changes                 // wait: the instance is being updated
	broken                  // fail: the deletion of the instance has failed
	over                    // stop: the deletion of the instance removes the binding
	lost                    // fail: the source has changed
	taken                   // wait: the deletion of the instance removes the binding in place of the unbind
)

// standing tells whether the operation may go on. An unbind may (UNB-10), unless the
// deletion of its instance has taken it over.
func (s subject) standing() standing {
	switch source := s.record.Operation.Source; {
	case source == nil:
	case source.Retained && !source.StandsRetained(s.retained, s.record.Operation.ID):
		return lost
	case !source.Retained && !source.Stands(s.source):
		return lost
	}
	switch op := s.record.Operation; {
	case op.TakenBy != "" && s.instance.Runs(lifecycle.Token{Operation: op.TakenBy}):
		return taken
	case op.Kind != lifecycle.Bind:
		return free
	case s.instance.Incarnation != s.record.InstanceIncarnation:
		return over
	}
	switch s.instance.State {
	case lifecycle.Ready:
		return free
	case lifecycle.Updating:
		return changes
	case lifecycle.DeleteFailed:
		return broken
	default:
		return over
	}
}

// check makes a commit fail unless what the operation depends on is still as it
// was read: a bind must not outlive its instance, and nothing is restored from a
// source that has changed. The commit that makes an undeleted instance ready ends
// the record of what was retained.
func (s subject) check(next lifecycle.Record) ledger.Change {
	source := s.record.Operation.Source
	switch stands := source != nil && s.standing() == free; {
	case stands && source.Retained && next.State == lifecycle.Ready:
		return ledger.DeleteRetained(s.retained)
	case stands && source.Retained:
		return ledger.CheckRetained(s.retained)
	case stands:
		return ledger.Check(s.source)
	}
	if s.record.Operation.Kind != lifecycle.Bind {
		return ledger.Change{}
	}
	return ledger.Check(s.instance)
}
