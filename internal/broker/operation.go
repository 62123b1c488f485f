package broker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A Poll is the state of an operation as both the last_operation endpoint and the status façade
// show it: they read the same record (FAC-15).
type Poll struct {
	Token     lifecycle.Token
	Operation lifecycle.Operation
	// RetryAfter is how long to wait until the next poll, while the operation is in progress.
	RetryAfter time.Duration
}

// LastOperation answers a poll of an instance or a binding (LOP-*, LOB-*). The token is a hint: if it is
// not recognised or belongs to another record, the answer is about the latest operation (LOP-08).
func (b *Broker) LastOperation(ctx context.Context, key lifecycle.Key, token string) (Poll, error) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	c, err := b.record(ctx, key)
	if err != nil {
		return Poll{}, err
	}
	switch {
	case c.Operation == nil && c.Incarnation != "":
		// The record was rebuilt. Its lost creation had succeeded, and so has a deletion that
		// ended the binding with its instance.
		return b.poll(key, lifecycle.Operation{Phase: lifecycle.Succeeded}), nil
	case c.Operation == nil:
		return Poll{}, lifecycle.RefuseMissing(key.Noun())
	}
	op, recognised := *c.Operation, false
	if failed := c.FailedCreation(); failed != nil {
		op = *failed // no request asked for the broker's later cleanup
	}
	if t, err := lifecycle.ParseToken(token); err == nil && t.Key == key {
		switch found, err := b.operationIn(ctx, c, t); {
		case err == nil:
			op, recognised = found, true
		case !errors.Is(err, errNoOperation):
			return Poll{}, err
		}
	}
	// A finished deletion is answered 410 to a poll with its token, and as success
	// to one without: both mean that nothing is left (LOP-10).
	if recognised && op.Kind.Deletes() && op.Phase == lifecycle.Succeeded {
		return Poll{}, errGone
	}
	return b.poll(key, op), nil
}

// Operation answers the status façade (FAC-*).
func (b *Broker) Operation(ctx context.Context, c Caller, token string) (Poll, error) {
	t, err := lifecycle.ParseToken(token)
	if err != nil || t.Key.Platform != c.Platform {
		return Poll{}, errNoOperation
	}
	ctx, cancel := b.limited(ctx)
	defer cancel()
	r, err := b.record(ctx, t.Key)
	if err != nil {
		return Poll{}, err
	}
	op, err := b.operationIn(ctx, r, t)
	return b.poll(t.Key, op), err
}

// Cancel turns a running creation into a deletion, as a DELETE does (FAC-10), and returns the
// creation, now cancelled and failed. deletion is the operation that cleans up; nil once the
// cleanup is done. Other operations are refused and left alone.
func (b *Broker) Cancel(ctx context.Context, c Caller, token string) (cancelled Poll, deletion *Poll, err error) {
	t, err := lifecycle.ParseToken(token)
	if err != nil || t.Key.Platform != c.Platform {
		return Poll{}, nil, errNoOperation
	}
	record, err := decide(ctx, b, func(limited context.Context, t lifecycle.Token) (lifecycle.Record, error) {
		r, err := b.record(limited, t.Key)
		if err != nil {
			return r, err
		}
		op, err := b.operationIn(limited, r, t)
		switch {
		case err != nil || op.Cancelled: // once it is cancelled, the request repeats an earlier one
			return r, err
		case op.Phase != lifecycle.InProgress:
			return r, lifecycle.RefuseFinished()
		case !op.Kind.Creates():
			return r, lifecycle.RefuseNoCreation(op.Kind)
		}
		return b.overtake(limited, c, r)
	}, t)
	if err != nil {
		return Poll{}, nil, err
	}
	ctx, cancel := b.limited(ctx)
	defer cancel()
	op, err := b.operationIn(ctx, record, t)
	if err != nil {
		return Poll{}, nil, err
	}
	if !op.Cancelled { // the creation has settled in between
		return Poll{}, nil, lifecycle.RefuseFinished()
	}
	if record.InProgress() && record.Operation.Kind.Deletes() {
		p := b.poll(t.Key, *record.Operation)
		deletion = &p
	}
	return b.poll(t.Key, op), deletion, nil
}

func (b *Broker) poll(key lifecycle.Key, op lifecycle.Operation) Poll {
	p := Poll{Token: lifecycle.Token{Operation: op.ID, Key: key}, Operation: op}
	if op.Phase == lifecycle.InProgress {
		p.RetryAfter = b.retryAfter(&op)
	}
	return p
}
