package broker_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
)

// fail ends an operation badly, as a worker would.
func (d *desk) fail(token lifecycle.Token) {
	d.Helper()
	d.commit(ledger.Put(expect.Get(d.record(token.Key).Fail(d.now(), lifecycle.Failure{Message: "no room"}))(d.T)))
}

// reclaim begins a deletion of the broker's own, as the reaper does.
func (d *desk) reclaim(key lifecycle.Key) lifecycle.Token {
	d.Helper()
	s := lifecycle.Start{ID: d.id(), Now: d.now(), Timeout: time.Hour, Own: true}
	r, err := d.record(key).BeginDelete(s)
	expect.OK(d.T, err)
	d.commit(ledger.Put(r))
	return lifecycle.Token{Operation: s.ID, Key: key}
}

// A kind is how an instance or a binding is asked for.
type kind struct {
	key         lifecycle.Key
	before      func(d *desk) // what must be there
	put, remove func(d *desk, c broker.Caller) (broker.Result, error)
	other       func(d *desk, c broker.Caller) (broker.Result, error) // the same id, and not the same
}

var kinds = map[string]kind{
	"Instance": {
		sourceKey,
		func(*desk) {},
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("async-bind", c, `{"a":1}`) },
		(*desk).delete,
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("async-bind", c, `{"a":2}`) },
	},
	"Binding": {
		boundKey,
		func(d *desk) { expect.Get(d.put("async-bind", d.caller(false), ""))(d.T) },
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.bind("i", "b", "async-bind", c) },
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.unbind("b", c) },
		func(d *desk, c broker.Caller) (broker.Result, error) {
			r, err := d.Bind(context.Background(), broker.BindRequest{
				Caller: c, InstanceID: "i", BindingID: "b", ServiceID: d.ids["demo"], PlanID: d.ids["async-bind"], AppGUID: "another",
			})
			return r, err
		},
	},
}

// stays requires that the creation reads as failed, however it is asked for.
func (d *desk) stays(when string, k kind, token lifecycle.Token) {
	d.Helper()
	started := d.started
	for range 3 {
		if r := d.gives(broker.Accepted, "PROV-30: "+when)(k.put(d, d.caller(true))); r.Token != token || r.RetryAfter <= 0 {
			d.Errorf("PROV-30: %s, the same request is answered %+v, want the token %v", when, r, token)
		}
	}
	expect.Same(d.T, "PROV-30: "+when+", what a repetition started", started, d.started)
	refused(d.T, lifecycle.Conflict, expect.Err(k.other(d, d.caller(true))), "PROV-08: %s, another request", when)
	for _, t := range []string{token.String(), ""} {
		p := d.reads(lifecycle.Failed, "LOP-15: "+when)(d.LastOperation(context.Background(), k.key, t))
		if p.Token != token || p.Operation.Description != "no room" {
			d.Errorf("LOP-15: %s, a poll of %q: %+v", when, t, p)
		}
	}
	p := d.reads(lifecycle.Failed, "FAC-15: "+when)(d.Operation(context.Background(), d.caller(true), token.String()))
	expect.Same(d.T, "FAC-15: "+when+", cancelled", false, p.Operation.Cancelled)
}

// failed has a creation fail that was accepted.
func (d *desk) failed(k kind) lifecycle.Token {
	d.Helper()
	k.before(d)
	token := d.gives(broker.Accepted, "the creation")(k.put(d, d.caller(true))).Token
	d.fail(token)
	return token
}

// PROV-30: what failed asynchronously stays failed, under its token, until the platform deletes it: also while the
// broker removes what is left of it, and as long as it remembers that.
func TestAFailedCreationKeepsItsToken(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			token := d.failed(k)
			d.stays("at once", k, token)
			d.fail(d.reclaim(k.key))
			d.stays("when the broker could not remove it", k, token)
			removal := d.reclaim(k.key)
			d.stays("while the broker removes it", k, token)
			// The past operation is forgotten before the tombstone is.
			d.pass(lifecycle.Retention + time.Hour)
			d.settle(removal)
			d.stays("when the broker has removed it", k, token)
			refused(t, lifecycle.Gone, expect.Err(k.remove(d, d.caller(true))), "DEPR-12")
			d.begins("after a DELETE", k, token)
		})
	}
}

// begins requires that the id is free, and that something new begins with it.
func (d *desk) begins(when string, k kind, before lifecycle.Token) {
	d.Helper()
	if r := d.gives(broker.Accepted, "PROV-30: "+when)(k.put(d, d.caller(true))); r.Token == before {
		d.Errorf("PROV-30: %s, the request is answered %+v", when, r)
	}
}

// PROV-30: a tombstone that expires, and a platform's DELETE at any time, free the id.
func TestWhatEndsAFailedCreation(t *testing.T) {
	ends := map[string]func(d *desk, k kind){
		"ADeletion": func(d *desk, k kind) { d.settle(expect.Get(k.remove(d, d.caller(true)))(d.T).Token) },
		"ADeletionThatJoinsTheBrokersOwn": func(d *desk, k kind) {
			own := d.reclaim(k.key)
			expect.Same(d.T, "the token of the DELETE", own, expect.Get(k.remove(d, d.caller(true)))(d.T).Token)
			refused(d.T, lifecycle.ConcurrencyError, expect.Err(k.put(d, d.caller(true))), "PROV-29")
			d.settle(own)
		},
		"Time": func(d *desk, k kind) {
			d.settle(d.reclaim(k.key))
			d.pass(lifecycle.Retention)
		},
	}
	for name, k := range kinds {
		for how, end := range ends {
			t.Run(name+how, func(t *testing.T) {
				d := newDesk(t)
				token := d.failed(k)
				end(d, k)
				d.begins("after "+how, k, token)
			})
		}
	}
}

// eithers are a PUT of what may be answered now or later, by kind.
var eithers = map[string]func(*desk, broker.Caller) (broker.Result, error){
	"Instance": func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("of either", c, "") },
	"Binding":  func(d *desk, c broker.Caller) (broker.Result, error) { return d.bind("i", "b", "of either", c) },
}

// newEither is a desk where a kind of these can be asked for.
func newEither(t *testing.T, kind string) *desk {
	d := newDesk(t)
	if kind == "Binding" {
		expect.Get(d.put("of either", d.caller(false), ""))(t)
	}
	return d
}

// PROV-30: a repetition that does not permit a 202 begins again.
func TestARepetitionWithoutPermissionBeginsAgain(t *testing.T) {
	for name, put := range eithers {
		t.Run(name, func(t *testing.T) {
			d := newEither(t, name)
			d.fail(d.gives(broker.Accepted, "the first")(put(d, d.caller(true))).Token)
			d.gives(broker.Created, "the repetition")(put(d, d.caller(false)))
			d.gives(broker.Done, "what was made then")(put(d, d.caller(true)))
		})
	}
}

// PROV-30: what failed synchronously was told in the answer, and its repetition begins again.
func TestASynchronousFailureIsTold(t *testing.T) {
	d := newDesk(t)
	d.settles, d.during = false, d.fail
	refused(t, lifecycle.OperationFailed, expect.Err(d.put("async", d.caller(false), "")), "the failure")
	d.settles = true
	d.gives(broker.Accepted, "the repetition")(d.put("async", d.caller(true), ""))
	expect.Same(t, "started", 1, d.started)
}

// PROV-30: a synchronous operation whose token is given to anybody is committed
// as asynchronous first: its failure is then told by that token.
func TestATokenOfASynchronousOperationIsAPromise(t *testing.T) {
	for name, make := range map[string]func(d *desk) lifecycle.Token{
		"AfterTheWait": func(d *desk) lifecycle.Token {
			token := d.gives(broker.Accepted, "after the wait")(d.put("sync", d.caller(true), "")).Token
			d.fail(token)
			return token
		},
		"ToAnotherRequest": func(d *desk) (given lifecycle.Token) {
			d.during = func(t lifecycle.Token) {
				given = d.gives(broker.Accepted, "another request")(d.put("sync", d.caller(true), "")).Token
				expect.Same(d.T, "its token", t, given)
				d.fail(t)
			}
			refused(d.T, lifecycle.OperationFailed, expect.Err(d.put("sync", d.caller(false), "")), "who waits")
			return given
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.settles = false
			token := make(d)
			expect.Same(t, "the token", token, d.gives(broker.Accepted, "a repetition")(d.put("sync", d.caller(true), "")).Token)
		})
	}
}

// Promise 1: a request that cannot wait for a creation any longer undoes it, but
// not once another request was given its token: what was accepted goes on.
func TestWhatWasPromisedIsNotUndone(t *testing.T) {
	puts := maps.Clone(eithers)
	puts["NeverAsynchronous"] = func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("sync", c, "") }
	for name, put := range puts {
		t.Run(name, func(t *testing.T) {
			d := newEither(t, name)
			d.settles = false
			var given lifecycle.Token
			d.during = func(lifecycle.Token) {
				given = d.gives(broker.Accepted, "who can be answered later")(put(d, d.caller(true))).Token
			}
			_, err := put(d, d.caller(false))
			refused(t, lifecycle.OperationFailed, err, "who cannot")
			expect.Never(t, "what it is told", fmt.Sprint(err), "removed")
			d.reads(lifecycle.InProgress, "the token that was given")(d.LastOperation(t.Context(), given.Key, given.String()))
			expect.Same(t, "the token of its repetition", given, expect.Get(put(d, d.caller(true)))(t).Token)
		})
	}
}

// An operation that ends while its token is about to be given away, or while it is about to be
// undone since it has not settled in time, is answered by its end.
func TestAPromiseThatComesTooLate(t *testing.T) {
	for name, tc := range map[string]struct {
		end       func(d *desk, t lifecycle.Token)
		permitted bool
		want      lifecycle.Reason // -1 for an effect
		effect    broker.Effect
	}{
		"Well":        {(*desk).settle, true, -1, broker.Created},
		"Badly":       {(*desk).fail, true, lifecycle.OperationFailed, 0},
		"WellToUndo":  {(*desk).settle, false, -1, broker.Created},
		"BadlyToUndo": {(*desk).fail, false, lifecycle.OperationFailed, 0},
		// PROV-30: another request has the token, and so gets this one.
		"BadlyAfterAnotherPromise": {func(d *desk, t lifecycle.Token) {
			r, _ := d.record(t.Key).Promised()
			d.commit(ledger.Put(r))
			d.fail(t)
		}, true, -1, broker.Accepted},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.settles = false
			var token lifecycle.Token
			d.during = func(t lifecycle.Token) { token = t }
			n := 2 // it is read to decide, and when it has not settled
			if tc.permitted {
				n = 3 // and to promise
			}
			d.afterReading(n, func() { tc.end(d, token) })
			r, err := d.put("sync", d.caller(tc.permitted), "")
			if reason(err) != tc.want || r.Effect != tc.effect || r.Effect == broker.Accepted && r.Token != token {
				t.Errorf("%+v %v", r, err)
			}
			if state := d.record(token.Key).State; state == lifecycle.Deleting {
				t.Errorf("it is %q", state)
			}
		})
	}
}

// The broker forgets a failed binding with its instance: the binding's id is free on the next instance.
func TestAFailedBindGoesWithItsInstance(t *testing.T) {
	d, k := newDesk(t), kinds["Binding"]
	token := d.failed(k)
	d.settle(d.reclaim(k.key))
	d.stays("on the instance", k, token)
	expect.Get(d.delete(d.caller(false)))(t)
	refused(t, lifecycle.NotFound, expect.Err(k.put(d, d.caller(true))), "BIND-06")
	k.before(d)
	d.begins("on the next instance", k, token)
}
