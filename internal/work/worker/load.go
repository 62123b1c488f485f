package worker

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A reading holds the records that a step has read: the record of its instance or binding, and
// the records that its operation depends on.
type reading struct {
	at       time.Time        // when the records were read
	record   lifecycle.Record // the record of the step's operation
	instance lifecycle.Record // the instance of a binding; for an instance, its own record
	source   lifecycle.Record // the instance that an instance is restored from
}

// read reads the records that a step depends on.
func (w *Worker) read(ctx context.Context, key lifecycle.Key) (s reading, err error) {
	s.at = w.Now()
	if s.record, err = w.Records.Record(ctx, key, s.at); err != nil {
		return s, err
	}
	if key.IsBinding() {
		s.instance, err = w.Records.Record(ctx, key.InstanceKey(), s.at)
		return s, err
	}
	s.instance = s.record
	if op := s.record.Operation; s.record.InProgress() && op.Source != nil {
		s.source, err = w.Records.Record(ctx, op.Source.Key(key), s.at)
	}
	return s, err
}

// A gate says whether an operation may go on. A bind depends on the state of its instance, and
// a restore on its source; no other operation depends on either.
type gate int

const (
	open         gate = iota // the instance, or the source, is unchanged and ready
	waitUpdate               // the instance is being updated
	waitDeletion             // the deletion of the instance removes the binding in place of the unbind
	stop                     // the deletion of the instance removes the binding
	failInstance             // the deletion of the instance has failed
	failSource               // the source has changed
)

// gate returns whether the operation may go on. An unbind may (UNB-10), unless the deletion of
// its instance has taken it over.
func (s reading) gate() gate {
	if source := s.record.Operation.Source; source != nil && !source.Stands(s.source) {
		return failSource
	}
	switch op := s.record.Operation; {
	case op.TakenBy != "" && s.instance.Runs(lifecycle.Token{Operation: op.TakenBy}):
		return waitDeletion
	case op.Kind != lifecycle.Bind:
		return open
	case s.instance.Incarnation != s.record.InstanceIncarnation:
		return stop
	}
	switch s.instance.State {
	case lifecycle.Ready:
		return open
	case lifecycle.Updating:
		return waitUpdate
	case lifecycle.DeleteFailed:
		return failInstance
	default:
		return stop
	}
}

// check makes a commit fail if a record that the operation depends on has changed since it was
// read. A bind must not outlive its instance, and nothing is restored from a changed source.
func (s reading) check() ledger.Change {
	switch op := s.record.Operation; {
	case op.Source != nil && s.gate() == open:
		return ledger.Check(s.source)
	case op.Kind == lifecycle.Bind:
		return ledger.Check(s.instance)
	}
	return ledger.Change{}
}
