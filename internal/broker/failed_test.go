package broker_test

import (
	"context"
	"fmt"
	"strings"
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
	ctx, failure := context.Background(), lifecycle.Failure{Message: "no room"}
	r, err := d.records.Record(ctx, token.Key, d.now())
	expect.OK(d.T, err)
	r, err = r.Fail(d.now(), failure)
	expect.OK(d.T, err)
	expect.OK(d.T, d.records.Commit(ctx, ledger.Put(r)))
}

// reclaim begins a deletion of the broker's own, as the reaper does.
func (d *desk) reclaim(key lifecycle.Key) lifecycle.Token {
	d.Helper()
	ctx := context.Background()
	s := lifecycle.Start{ID: d.id(), Now: d.now(), Timeout: time.Hour, Own: true}
	var past *lifecycle.PastOperation
	r, err := d.records.Record(ctx, key, d.now())
	expect.OK(d.T, err)
	r, past, err = r.BeginDelete(s)
	expect.OK(d.T, err)
	expect.OK(d.T, d.records.Commit(ctx, ledger.Put(r), ledger.PutPast(past)))
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
		lifecycle.Key{Platform: "p", Instance: "i"},
		func(*desk) {},
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("async-bind", c, `{"a":1}`) },
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.delete(c) },
		func(d *desk, c broker.Caller) (broker.Result, error) { return d.put("async-bind", c, `{"a":2}`) },
	},
	"Binding": {
		lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"},
		func(d *desk) { expect.Get(d.put("async-bind", d.caller(false), ""))(d.T) },
		func(d *desk, c broker.Caller) (broker.Result, error) {
			r, err := d.bind("i", "b", "async-bind", c)
			return r.Result, err
		},
		func(d *desk, c broker.Caller) (broker.Result, error) {
			return d.Delete(context.Background(), broker.DeleteRequest{Caller: c, InstanceID: "i", BindingID: "b", ServiceID: "s", PlanID: "p"})
		},
		func(d *desk, c broker.Caller) (broker.Result, error) {
			r, err := d.Bind(context.Background(), broker.BindRequest{
				Caller: c, InstanceID: "i", BindingID: "b", ServiceID: d.ids["demo"], PlanID: d.ids["async-bind"], AppGUID: "another",
			})
			return r.Result, err
		},
	},
}

// stays requires that the creation reads as failed, however it is asked for.
func (d *desk) stays(when string, k kind, token lifecycle.Token) {
	d.Helper()
	started := d.started
	for range 3 {
		if r, err := k.put(d, d.caller(true)); err != nil || r.Effect != broker.Accepted || r.Token != token || r.RetryAfter <= 0 {
			d.Errorf("PROV-30: %s, the same request is answered %+v %v, want the token %v", when, r, err, token)
		}
	}
	expect.Same(d.T, fmt.Sprintf("PROV-30: %s, what a repetition started", when), started, d.started)
	if _, err := k.other(d, d.caller(true)); reason(err) != lifecycle.Conflict {
		d.Errorf("PROV-08: %s, another request is answered %v", when, err)
	}
	for _, t := range []string{token.String(), ""} {
		if p, err := d.LastOperation(context.Background(), k.key, t); err != nil || p.Token != token || p.Operation.Phase != lifecycle.Failed ||
			p.Operation.Description != "no room" {
			d.Errorf("LOP-15: %s, a poll of %q: %+v %v", when, t, p, err)
		}
	}
	if p, err := d.Operation(context.Background(), d.caller(true), token.String()); err != nil || p.Operation.Phase != lifecycle.Failed ||
		p.Operation.Cancelled {
		d.Errorf("FAC-15: %s, the status: %+v %v", when, p, err)
	}
}

// PROV-30: what failed asynchronously stays failed, under its token, until the
// platform deletes it: also while the broker removes what is left of it, and as
// long as it remembers that.
func TestAFailedCreationKeepsItsToken(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			k.before(d)
			first, err := k.put(d, d.caller(true))
			if err != nil || first.Effect != broker.Accepted {
				t.Fatalf("%+v %v", first, err)
			}
			d.fail(first.Token)
			d.stays("at once", k, first.Token)
			d.fail(d.reclaim(k.key))
			d.stays("when the broker could not remove it", k, first.Token)
			removal := d.reclaim(k.key)
			d.stays("while the broker removes it", k, first.Token)
			// The past operation is forgotten before the tombstone is.
			d.clock = d.clock.Add(lifecycle.Retention + time.Hour)
			d.settle(removal)
			d.stays("when the broker has removed it", k, first.Token)
			refused(t, lifecycle.Gone, expect.Err(k.remove(d, d.caller(true))), "DEPR-12")
			d.begins("after a DELETE", k, first.Token)
		})
	}
}

// begins requires that the id is free, and that something new begins with it.
func (d *desk) begins(when string, k kind, before lifecycle.Token) {
	d.Helper()
	if r, err := k.put(d, d.caller(true)); err != nil || r.Effect != broker.Accepted || r.Token == before {
		d.Errorf("PROV-30: %s, the request is answered %+v %v", when, r, err)
	}
}

// PROV-30: a tombstone that expires, and a platform's DELETE at any time, free
// the id.
func TestWhatEndsAFailedCreation(t *testing.T) {
	ends := map[string]func(d *desk, k kind){
		"ADeletion": func(d *desk, k kind) {
			r, err := k.remove(d, d.caller(true))
			expect.OK(d.T, err)
			d.settle(r.Token)
		},
		"ADeletionThatJoinsTheBrokersOwn": func(d *desk, k kind) {
			own := d.reclaim(k.key)
			if r, err := k.remove(d, d.caller(true)); err != nil || r.Token != own {
				d.Fatalf("%+v %v", r, err)
			}
			refused(d.T, lifecycle.ConcurrencyError, expect.Err(k.put(d, d.caller(true))), "PROV-29")
			d.settle(own)
		},
		"Time": func(d *desk, k kind) {
			d.settle(d.reclaim(k.key))
			d.clock = d.clock.Add(lifecycle.Retention)
		},
	}
	for name, k := range kinds {
		for how, end := range ends {
			t.Run(name+how, func(t *testing.T) {
				d := newDesk(t)
				k.before(d)
				first, err := k.put(d, d.caller(true))
				expect.OK(t, err)
				d.fail(first.Token)
				end(d, k)
				d.begins("after "+how, k, first.Token)
			})
		}
	}
}

// PROV-30: a repetition that does not permit a 202 begins again.
func TestARepetitionWithoutPermissionBeginsAgain(t *testing.T) {
	provision := func(d *desk, c broker.Caller) (broker.Result, error) {
		return d.Provision(t.Context(), broker.ProvisionRequest{
			Caller: c, InstanceID: "i", ServiceID: d.ids["either"], PlanID: d.ids["of either"], OrganizationGUID: "o", SpaceGUID: "s",
		})
	}
	bind := func(d *desk, c broker.Caller) (broker.Result, error) {
		r, err := d.Bind(t.Context(),
			broker.BindRequest{Caller: c, InstanceID: "i", BindingID: "b", ServiceID: d.ids["either"], PlanID: d.ids["of either"]})
		return r.Result, err
	}
	tests := map[string]func(*desk, broker.Caller) (broker.Result, error){"Instance": provision, "Binding": bind}
	for name, put := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if name != "Instance" {
				expect.Get(provision(d, d.caller(false)))(t)
			}
			first, err := put(d, d.caller(true))
			if err != nil || first.Effect != broker.Accepted {
				t.Fatalf("%+v %v", first, err)
			}
			d.fail(first.Token)
			if r, err := put(d, d.caller(false)); err != nil || r.Effect != broker.Created {
				t.Errorf("%+v %v", r, err)
			}
			if r, err := put(d, d.caller(true)); err != nil || r.Effect != broker.Done {
				t.Errorf("what was made then: %+v %v", r, err)
			}
		})
	}
}

// PROV-30: what failed synchronously was told in the answer, and its repetition
// begins again.
func TestASynchronousFailureIsTold(t *testing.T) {
	d := newDesk(t)
	d.settles, d.during = false, d.fail
	if _, err := d.put("async", d.caller(false), ""); reason(err) != lifecycle.OperationFailed {
		t.Fatal(err)
	}
	d.settles = true
	if r, err := d.put("async", d.caller(true), ""); err != nil || r.Effect != broker.Accepted || d.started != 1 {
		t.Errorf("%+v %v, %d started", r, err, d.started)
	}
}

// PROV-30: a synchronous operation whose token is given to anybody is committed
// as asynchronous first: its failure is then told by that token.
func TestATokenOfASynchronousOperationIsAPromise(t *testing.T) {
	tests := map[string]func(d *desk) lifecycle.Token{
		"AfterTheWait": func(d *desk) lifecycle.Token {
			d.settles = false
			r, err := d.put("sync", d.caller(true), "")
			if err != nil || r.Effect != broker.Accepted {
				d.Fatalf("%+v %v", r, err)
			}
			d.fail(r.Token)
			return r.Token
		},
		"ToAnotherRequest": func(d *desk) (given lifecycle.Token) {
			d.settles = false
			d.during = func(t lifecycle.Token) {
				r, err := d.put("sync", d.caller(true), "")
				if err != nil || r.Effect != broker.Accepted || r.Token != t {
					d.Errorf("%+v %v", r, err)
				}
				given = r.Token
				d.fail(t)
			}
			if _, err := d.put("sync", d.caller(false), ""); reason(err) != lifecycle.OperationFailed {
				d.Error(err)
			}
			return given
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			token := make(d)
			if r, err := d.put("sync", d.caller(true), ""); err != nil || r.Effect != broker.Accepted || r.Token != token {
				t.Errorf("%+v %v, want %v", r, err, token)
			}
		})
	}
}

// Promise 1: a request that cannot wait for a creation any longer undoes it, but
// not once another request was given its token: what was accepted goes on.
func TestWhatWasPromisedIsNotUndone(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			plan := map[string]string{"Instance": "sync", "Binding": "of either"}[name]
			put := func(d *desk, c broker.Caller) (broker.Result, error) { return d.put(plan, c, "") }
			d := newDesk(t)
			if k.key.IsBinding() {
				q := broker.ProvisionRequest{
					Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["either"], PlanID: d.ids[plan], OrganizationGUID: "o", SpaceGUID: "s",
				}
				expect.Get(d.Provision(t.Context(), q))(t)
				put = func(d *desk, c broker.Caller) (broker.Result, error) {
					q := broker.BindRequest{Caller: c, InstanceID: "i", BindingID: "b", ServiceID: d.ids["either"], PlanID: d.ids[plan]}
					r, err := d.Bind(t.Context(), q)
					return r.Result, err
				}
			}
			d.settles = false
			var given broker.Result
			var err error
			d.during = func(lifecycle.Token) { given, err = put(d, d.caller(true)) }
			if _, err := put(d, d.caller(false)); reason(err) != lifecycle.OperationFailed || strings.Contains(err.Error(), "removed") {
				t.Errorf("who cannot be answered later: %v", err)
			}
			if err != nil || given.Effect != broker.Accepted {
				t.Fatalf("who can: %+v %v", given, err)
			}
			if p, err := d.LastOperation(t.Context(), k.key, given.Token.String()); err != nil || p.Operation.Phase != lifecycle.InProgress {
				t.Errorf("the token that was given reads %+v %v", p.Operation, err)
			}
			if again, err := put(d, d.caller(true)); err != nil || again.Token != given.Token {
				t.Errorf("its repetition: %+v %v", again, err)
			}
		})
	}
}

// reading does something after the n-th reading of an instance, from then.
type reading struct {
	broker.Records
	n  int
	do func()
}

func (r *reading) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	i, err := r.Records.Record(ctx, key, now)
	if !key.IsBinding() {
		r.n--
	}
	if !key.IsBinding() && r.n == 0 {
		r.do()
	}
	return i, err
}

// An operation that ends while its token is about to be given away is answered
// by its end.
func TestAPromiseThatComesTooLate(t *testing.T) {
	ends := map[string]struct {
		end    func(d *desk, t lifecycle.Token)
		want   lifecycle.Reason // -1 for an effect
		effect broker.Effect
	}{
		"Well":  {(*desk).settle, -1, broker.Created},
		"Badly": {(*desk).fail, lifecycle.OperationFailed, 0},
		// PROV-30: another request has the token, and so gets this one.
		"BadlyAfterAnotherPromise": {func(d *desk, t lifecycle.Token) {
			r, err := d.records.Record(d.Context(), t.Key, d.now())
			expect.OK(d.T, err)
			r, _ = r.Promised()
			expect.OK(d.T, d.records.Commit(d.Context(), ledger.Put(r)))
			d.fail(t)
		}, -1, broker.Accepted},
	}
	for name, tc := range ends {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.settles = false
			o := d.Options
			var token lifecycle.Token
			d.during = func(t lifecycle.Token) { token = t }
			// It is read to decide, to answer, and to promise.
			o.Records = &reading{d.records, 3, func() { tc.end(d, token) }}
			r, err := broker.New(o).Provision(t.Context(), broker.ProvisionRequest{
				Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
			})
			if reason(err) != tc.want || r.Effect != tc.effect || r.Effect == broker.Accepted && r.Token != token {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// The broker forgets a failed binding with its instance: the binding's id is free on the
// next instance.
func TestAFailedBindGoesWithItsInstance(t *testing.T) {
	d, k := newDesk(t), kinds["Binding"]
	k.before(d)
	first, err := k.put(d, d.caller(true))
	expect.OK(t, err)
	d.fail(first.Token)
	d.settle(d.reclaim(k.key))
	d.stays("on the instance", k, first.Token)
	expect.Get(d.delete(d.caller(false)))(t)
	refused(t, lifecycle.NotFound, expect.Err(k.put(d, d.caller(true))), "BIND-06")
	k.before(d)
	d.begins("on the next instance", k, first.Token)
}
