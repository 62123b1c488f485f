package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// A deed is one event of a story, and all that it changes in the record.
type deed struct {
	reason string
	do     func(lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error)
	change func(*lifecycle.Record)
	// past is the operation that is to be remembered, if there is one.
	past *lifecycle.Operation
}

// testStory tells a story: after each deed the whole record is as before,
// except for what the deed changes.
func testStory(t *testing.T, key lifecycle.Key, story []deed) {
	t.Helper()
	record := lifecycle.Record{Key: key}
	// Deeds never touch the version: that is whoever writes the record.
	record.Version = 7
	for n, d := range story {
		before := deepCopy(record)
		next, past, err := d.do(record)
		if err != nil {
			t.Fatalf("deed %d, %s: %v", n, d.reason, err)
		}
		same(t, d.reason+": the record it was made from", before, record)
		d.change(&before)
		same(t, d.reason, before, next)
		if (past == nil) != (d.past == nil) {
			t.Fatalf("%s: it remembers %+v", d.reason, past)
		}
		if past != nil {
			same(t, d.reason+": the operation that it replaces", d.past, &past.Operation)
			same(t, d.reason+": where it was", next.Key, past.Key)
			if want := next.Operation.Started.Add(lifecycle.Retention); !past.Expires.Equal(want) || past.Version != 0 {
				t.Errorf("%s: it expires at %v and has version %d, want %v and 0", d.reason, past.Expires, past.Version, want)
			}
		}
		record = next
	}
}

// settled is a deed that replaces no operation.
func settled(do func(lifecycle.Record) (lifecycle.Record,
	error)) func(lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
	return func(r lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
		next, err := do(r)
		return next, nil, err
	}
}

// running is an operation as it begins.
func running(id string, kind lifecycle.Kind, minute int) *lifecycle.Operation {
	return &lifecycle.Operation{ID: id, Kind: kind, Phase: lifecycle.InProgress, Started: at(minute),
		Deadline: at(minute + 60), Attempt: 1, Next: at(minute), Asker: asker}
}

// ended is the operation after it has settled.
func ended(op *lifecycle.Operation, phase lifecycle.Phase, minute int, description string) *lifecycle.Operation {
	out := *op
	out.Phase, out.Settled, out.Next, out.Description = phase, at(minute), time.Time{}, description
	if phase == lifecycle.Succeeded {
		out.Percent = 100
	}
	return &out
}

// unusable and repeatable are what an operation says that failed.
func unusable(op *lifecycle.Operation) *lifecycle.Operation   { op.InstanceUsable = &no; return op }
func repeatable(op *lifecycle.Operation) *lifecycle.Operation { op.UpdateRepeatable = &yes; return op }

const cancelledBy = "The operation was cancelled by a later deletion."

// cancelled is the operation as it is remembered when a deletion overtook it.
func cancelled(op *lifecycle.Operation, minute int) *lifecycle.Operation {
	out := ended(op, lifecycle.Failed, minute, cancelledBy)
	out.Cancelled = true
	return out
}

func provisions(id string, minute int) deed {
	return deed{
		reason: "a creation begins",
		do: func(i lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
			return i.BeginCreate(start(id, at(minute)), instances.fresh)
		},
		change: func(i *lifecycle.Record) {
			i.Key, i.State, i.Operation = instanceKey, lifecycle.Creating, running(id, lifecycle.Provision, minute)
			i.Due, i.Expires, i.LateLook = at(minute).Add(lifecycle.Grace), time.Time{}, time.Time{}
			i.CreateReceived = at(minute).Add(-time.Second)
			i.Incarnation, i.Provider, i.Attributes, i.Created, i.Updated = id, "provider", attributes("small"), at(minute), time.Time{}
		},
	}
}

func updates(id string, minute int, plan string, past *lifecycle.Operation) deed {
	return deed{
		reason: "an update begins, and the attributes stay as they are",
		do: func(i lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
			return i.BeginUpdate(start(id, at(minute)), attributes(plan))
		},
		change: func(i *lifecycle.Record) {
			target := attributes(plan)
			i.State, i.Operation = lifecycle.Updating, running(id, lifecycle.Update, minute)
			i.Operation.Target = &target
			i.Due = at(minute).Add(lifecycle.Grace)
		},
		past: past,
	}
}

func deprovisions(id string, minute int, past *lifecycle.Operation) deed {
	return deed{
		reason: "a deletion begins, and the attributes stay for whoever removes things",
		do: func(i lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
			return i.BeginDelete(start(id, at(minute)))
		},
		change: func(i *lifecycle.Record) {
			i.Unfinished = i.Unfinished || i.State == lifecycle.Creating || i.State == lifecycle.CreateFailed
			i.State, i.Operation = lifecycle.Deleting, running(id, lifecycle.Deprovision, minute)
			i.Due, i.DeleteReceived = at(minute).Add(lifecycle.Grace), at(minute).Add(-time.Second)
		},
		past: past,
	}
}

// settles ends the operation, which is due no more.
func settles(reason string, phase lifecycle.Phase, minute int, message string,
	do func(lifecycle.Record) (lifecycle.Record, error), change func(*lifecycle.Record)) deed {
	return deed{reason: reason, do: settled(do), change: func(r *lifecycle.Record) {
		r.Operation, r.Due = ended(r.Operation, phase, minute, message), time.Time{}
		change(r)
	}}
}

func succeeds(reason string, minute int, change func(*lifecycle.Record)) deed {
	return settles(reason, lifecycle.Succeeded, minute, "",
		func(i lifecycle.Record) (lifecycle.Record, error) { return i.Succeed(at(minute), nil) }, change)
}

func fails(reason string, minute int, f lifecycle.Failure, change func(*lifecycle.Record)) deed {
	return settles(reason, lifecycle.Failed, minute, f.Message,
		func(i lifecycle.Record) (lifecycle.Record, error) { return i.Fail(at(minute), f) }, change)
}

// entombs is a deletion, received at a minute, of what there is not.
func entombs(reason string, minute, received int, change func(*lifecycle.Record)) deed {
	return deed{reason: reason, change: change, do: settled(func(r lifecycle.Record) (lifecycle.Record, error) {
		return r.Entomb(at(minute), at(received))
	})}
}

func ready(i *lifecycle.Record) { i.State = lifecycle.Ready }

func updated(minute int, plan string) func(i *lifecycle.Record) {
	return func(i *lifecycle.Record) {
		i.State, i.Attributes, i.Operation.Target, i.Unusable, i.Updated = lifecycle.Ready, attributes(plan), nil, false, at(minute)
	}
}

func buried(i *lifecycle.Record, minute int) {
	kept := lifecycle.Attributes{ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID}
	i.State, i.Attributes, i.Unusable = lifecycle.Deleted, kept, false
	i.Expires, i.LateLook = at(minute).Add(lifecycle.Retention), at(minute).Add(lifecycle.LateLook)
	i.Due, i.Wary, i.AbsentSince = i.LateLook, false, time.Time{}
}

// entombed is a tombstone of what never was: nothing can come late of it.
func entombed(i *lifecycle.Record, minute int) {
	buried(i, minute)
	i.Due, i.LateLook = i.Expires, time.Time{}
}

func inCourse(reason string, do func(lifecycle.Record) lifecycle.Record, change func(*lifecycle.Record)) deed {
	return deed{reason: reason, do: settled(func(i lifecycle.Record) (lifecycle.Record, error) { return do(i), nil }),
		change: change}
}

func instanceStories() map[string][]deed {
	with := func(d deed, past *lifecycle.Operation) deed {
		d.past = past
		return d
	}
	lease := lifecycle.Lease{Holder: "step", Operation: "create", Taken: at(1), Until: at(3)}
	provisioned := ended(running("create", lifecycle.Provision, 0), lifecycle.Succeeded, 2, "")
	return map[string][]deed{
		"WholeLife": {
			provisions("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large", provisioned),
			succeeds("an update succeeds: its target is what the instance is", 4, updated(4, "large")),
			{reason: "UPD-15: a context alone is no operation",
				do: settled(func(i lifecycle.Record) (lifecycle.Record, error) {
					return i.SetContext(lifecycle.Attributes{Context: json.RawMessage(`{"a":1}`)}, at(5)), nil
				}),
				change: func(i *lifecycle.Record) {
					i.Attributes.Context, i.Updated = json.RawMessage(`{"a":1}`), at(5)
				}},
			deprovisions("delete", 6, ended(running("update", lifecycle.Update, 3), lifecycle.Succeeded, 4, "")),
			succeeds("a tombstone keeps no user's data", 7, func(i *lifecycle.Record) { buried(i, 7) }),
			entombs("a deletion of what is deleted already keeps the tombstone for longer", 8, 8, func(i *lifecycle.Record) {
				i.DeleteReceived, i.Expires = at(8), at(8).Add(lifecycle.Retention)
			}),
			with(provisions("again", 9), ended(running("delete", lifecycle.Deprovision, 6), lifecycle.Succeeded, 7, "")),
		},
		"Overtaken": {
			provisions("create", 0),
			inCourse("a step may call the cloud",
				func(c lifecycle.Record) lifecycle.Record { return c.Leased("step", at(1), at(3), nil) },
				func(c *lifecycle.Record) { c.Leases, c.Due = []lifecycle.Lease{lease}, at(3) }),
			inCourse("it looks", func(c lifecycle.Record) lifecycle.Record {
				return c.Looked(at(1), lifecycle.Look{Percent: 40, Description: "halfway", After: time.Minute})
			}, func(c *lifecycle.Record) {
				c.Operation.Percent, c.Operation.Description, c.Operation.Next = 40, "halfway", at(2)
			}),
			inCourse("it meets a fault", func(c lifecycle.Record) lifecycle.Record {
				return c.Faulted(at(1), lifecycle.Fault{After: time.Second})
			},
				func(c *lifecycle.Record) { c.Operation.Faults, c.Operation.Next = 1, at(1).Add(time.Second) }),
			deprovisions("delete", 2, func() *lifecycle.Operation {
				op := cancelled(running("create", lifecycle.Provision, 0), 2)
				op.Percent = 40
				return op
			}()), // LOP-16; the lease stays, for the deletion to wait for
			inCourse("the overtaken step gives its lease up", func(c lifecycle.Record) lifecycle.Record { return c.Released("step") },
				func(c *lifecycle.Record) { c.Leases = nil }),
			succeeds("what the creation made is gone", 4, func(i *lifecycle.Record) { buried(i, 4) }),
		},
		"FailedAndRepeated": {
			provisions("create", 0),
			fails("LOP-15: no flags come with a failed creation; it is reclaimed later (ORB-04)", 2,
				lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &no}, func(i *lifecycle.Record) {
					i.State, i.Due = lifecycle.CreateFailed, at(2).Add(lifecycle.ReclaimAfter)
				}),
			with(provisions("again", 3), ended(running("create", lifecycle.Provision, 0), lifecycle.Failed, 2, "no room")),
			succeeds("PROV-30: it succeeds at last", 4, ready),
		},
	}
}

func instanceFailures() map[string][]deed {
	failure := lifecycle.Failure{Message: "no room"}
	provisioned := ended(running("create", lifecycle.Provision, 0), lifecycle.Succeeded, 2, "")
	return map[string][]deed{
		"FailedUpdates": {
			provisions("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large", provisioned),
			fails("UPD-23: a failed update leaves the attributes as they were", 4, failure, func(i *lifecycle.Record) {
				i.State, i.Operation.Target = lifecycle.Ready, nil
			}),
			updates("update-2", 5, "large", ended(running("update", lifecycle.Update, 3), lifecycle.Failed, 4, "no room")),
			fails("UPD-24: it says that the instance is unusable", 6,
				lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &yes}, func(i *lifecycle.Record) {
					i.State, i.Operation.Target, i.Unusable = lifecycle.Ready, nil, true
					i.Operation.InstanceUsable, i.Operation.UpdateRepeatable = &no, &yes
				}),
			updates("repair", 7, "small",
				repeatable(unusable(ended(running("update-2", lifecycle.Update, 5), lifecycle.Failed, 6, "no room")))),
			fails("ERR-10: a repair that fails without a word repairs nothing, and says so", 8, lifecycle.Overdue(), func(i *lifecycle.Record) {
				i.State, i.Operation.Target, i.Operation.InstanceUsable = lifecycle.Ready, nil, &no
			}),
			updates("repair-2", 9, "small",
				unusable(ended(running("repair", lifecycle.Update, 7), lifecycle.Failed, 8, lifecycle.Overdue().Message))),
			succeeds("UPD-25: a repair succeeds", 10, updated(10, "small")),
			updates("update-3", 11, "large", ended(running("repair-2", lifecycle.Update, 9), lifecycle.Succeeded, 10, "")),
			fails("it says that the instance is unusable", 12, lifecycle.Failure{InstanceUsable: &no}, func(i *lifecycle.Record) {
				i.State, i.Operation.Target, i.Unusable, i.Operation.InstanceUsable = lifecycle.Ready, nil, true, &no
			}),
			updates("repair-3", 13, "large",
				unusable(ended(running("update-3", lifecycle.Update, 11), lifecycle.Failed, 12, ""))),
			fails("a repair that fails may still say that the instance is usable again", 14, lifecycle.Failure{InstanceUsable: &yes},
				func(i *lifecycle.Record) {
					i.State, i.Operation.Target, i.Unusable, i.Operation.InstanceUsable = lifecycle.Ready, nil, false, &yes
				}),
		},
		"UnusableAndDeleted": {
			provisions("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large", provisioned),
			fails("it leaves the instance unusable", 4, lifecycle.Failure{InstanceUsable: &no}, func(i *lifecycle.Record) {
				i.State, i.Operation.Target, i.Unusable, i.Operation.InstanceUsable = lifecycle.Ready, nil, true, &no
			}),
			deprovisions("delete", 5, unusable(ended(running("update", lifecycle.Update, 3), lifecycle.Failed, 4, ""))),
			succeeds("the tombstone is not unusable", 6, func(i *lifecycle.Record) { buried(i, 6) }),
		},
		"FailedDeletion": {
			provisions("create", 0),
			succeeds("a creation succeeds", 2, ready),
			deprovisions("delete", 3, provisioned),
			fails("DEPR-13, ERR-10: part may be gone, whatever the provider says; only one flag comes with it", 4,
				lifecycle.Failure{Message: "no room", InstanceUsable: &yes, UpdateRepeatable: &yes}, func(i *lifecycle.Record) {
					i.State, i.Operation.InstanceUsable, i.Due = lifecycle.DeleteFailed, &no, at(4).Add(lifecycle.ReclaimAfter)
				}),
			deprovisions("delete-2", 5,
				unusable(ended(running("delete", lifecycle.Deprovision, 3), lifecycle.Failed, 4, "no room"))),
			succeeds("DEPR-13: it succeeds at last", 6, func(i *lifecycle.Record) { buried(i, 6) }),
		},
		"RefusedDeletion": {
			provisions("create", 0),
			succeeds("a creation succeeds", 2, ready),
			deprovisions("delete", 3, provisioned),
			fails("ERR-10: nothing was touched: it is as it was, and nobody deletes it but who asks again", 4,
				lifecycle.Failure{Message: "not empty", InstanceUsable: &yes, Untouched: true}, func(i *lifecycle.Record) {
					i.State, i.Operation.InstanceUsable = lifecycle.Ready, &yes
				}),
		},
		"NeverExisted": {
			entombs("ORB-01: a deletion of what does not exist is remembered", 1, 0, func(i *lifecycle.Record) {
				i.Key, i.DeleteReceived = instanceKey, at(0)
				entombed(i, 1)
			}),
			entombs("one that was held up on its way does not move it back", 2, -5, func(i *lifecycle.Record) { entombed(i, 2) }),
			provisions("create", 3),
		},
	}
}

func TestInstanceStories(t *testing.T) {
	stories := instanceStories()
	maps.Copy(stories, instanceFailures())
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { testStory(t, instanceKey, story) })
	}
}

func binds(id string, minute int, past *lifecycle.Operation) deed {
	return deed{
		reason: "a binding begins",
		do: func(b lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
			// BeginCreate ignores members that a request cannot set.
			fresh := bound("small")
			fresh.Version, fresh.State, fresh.Wary = 99, lifecycle.Ready, true
			fresh.Incarnation, fresh.Created, fresh.Unusable = "another", at(99), true
			return b.BeginCreate(start(id, at(minute)), fresh)
		},
		change: func(b *lifecycle.Record) {
			fresh := bound("small")
			b.Provider, b.Attributes, b.BindingOnly = fresh.Provider, fresh.Attributes, fresh.BindingOnly
			b.Incarnation, b.Created = id, at(minute)
			b.Key, b.State, b.Operation = bindingKey, lifecycle.Creating, running(id, lifecycle.Bind, minute)
			b.Due, b.Expires, b.LateLook = at(minute).Add(lifecycle.Grace), time.Time{}, time.Time{}
			b.CreateReceived = at(minute).Add(-time.Second)
		},
		past: past,
	}
}

func unbinds(id string, minute int, past *lifecycle.Operation) deed {
	return deed{
		reason: "an unbind begins",
		do: func(b lifecycle.Record) (lifecycle.Record, *lifecycle.PastOperation, error) {
			return b.BeginDelete(start(id, at(minute)))
		},
		change: func(b *lifecycle.Record) {
			b.State, b.Operation = lifecycle.Deleting, running(id, lifecycle.Unbind, minute)
			b.Due, b.DeleteReceived = at(minute).Add(lifecycle.Grace), at(minute).Add(-time.Second)
		},
		past: past,
	}
}

func bindingSucceeds(reason string, minute int, change func(*lifecycle.Record)) deed {
	return settles(reason, lifecycle.Succeeded, minute, "", func(b lifecycle.Record) (lifecycle.Record, error) {
		return b.Succeed(at(minute), lifecycle.Sealed("sealed grant"))
	}, change)
}

func bindingFails(reason string, minute int, state lifecycle.State) deed {
	f := lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &no}
	return fails(reason, minute, f, func(b *lifecycle.Record) { b.State, b.Due = state, at(minute).Add(lifecycle.ReclaimAfter) })
}

// unbound is a tombstone: only what names things is left.
func unbound(b *lifecycle.Record, minute int) {
	b.State, b.Expires, b.LateLook = lifecycle.Deleted, at(minute).Add(lifecycle.Retention), at(minute).Add(lifecycle.LateLook)
	b.Due, b.Wary, b.AbsentSince = b.LateLook, false, time.Time{}
	b.Attributes.Parameters, b.Secret, b.Grant, b.Attributes.Context, b.AppGUID, b.Route, b.Predecessor = nil, nil, nil, nil, "", "", ""
}

func removed(reason string, minute int, change func(*lifecycle.Record)) deed {
	return deed{
		reason: reason,
		do: settled(func(b lifecycle.Record) (lifecycle.Record, error) {
			return b.Remove(at(minute), at(minute).Add(-time.Second))
		}),
		change: func(b *lifecycle.Record) {
			b.DeleteReceived = at(minute).Add(-time.Second)
			unbound(b, minute)
			change(b)
		},
	}
}

func granted(b *lifecycle.Record) {
	b.State, b.Grant = lifecycle.Ready, lifecycle.Sealed("sealed grant")
}

func TestBindingStories(t *testing.T) {
	nothing := func(*lifecycle.Record) {}
	bindEnded := ended(running("create", lifecycle.Bind, 0), lifecycle.Succeeded, 1, "")
	bindFailed := ended(running("create", lifecycle.Bind, 0), lifecycle.Failed, 1, "no room")
	unbindFailed := ended(running("delete", lifecycle.Unbind, 2), lifecycle.Failed, 3, "no room")
	stories := map[string][]deed{
		"WholeLife": {
			binds("create", 0, nil),
			bindingSucceeds("a bind succeeds with its grant", 1, granted),
			unbinds("delete", 2, bindEnded),
			bindingSucceeds("a tombstone keeps no secret; an unbind gives no grant", 3, func(b *lifecycle.Record) { unbound(b, 3) }),
			entombs("an unbind of what is unbound keeps the tombstone for longer", 4, -5,
				func(b *lifecycle.Record) { b.Expires = at(4).Add(lifecycle.Retention) }),
			binds("again", 5, ended(running("delete", lifecycle.Unbind, 2), lifecycle.Succeeded, 3, "")), // IDEM-09
		},
		"FailedAndRepeated": {
			binds("create", 0, nil),
			bindingFails("LOB-01: no flags come with a binding; the secret stays for whoever removes what there is", 1,
				lifecycle.CreateFailed),
			binds("again", 2, bindFailed),
		},
		"FailedUnbind": {binds("create", 0, nil), bindingSucceeds("a bind succeeds", 1, granted),
			unbinds("delete", 2, bindEnded), bindingFails("an unbind fails", 3, lifecycle.DeleteFailed),
			unbinds("delete-2", 4, unbindFailed)},
		"Overtaken": {
			binds("create", 0, nil),
			unbinds("delete", 2, cancelled(running("create", lifecycle.Bind, 0), 2)), // UNB-08
		},
		"NeverExisted": {
			{reason: "ORB-02",
				do: settled(func(b lifecycle.Record) (lifecycle.Record, error) { return b.Entomb(at(1), at(0)) }),
				change: func(b *lifecycle.Record) {
					b.Key, b.DeleteReceived = bindingKey, at(0)
					unbound(b, 1)
					b.Due, b.LateLook = b.Expires, time.Time{}
				}},
			binds("create", 2, nil),
		},
		"RemovedWhileBinding": {
			binds("create", 0, nil),
			removed("a bind that runs ends badly with its instance", 2, func(b *lifecycle.Record) {
				b.Operation = ended(b.Operation, lifecycle.Failed, 2, "The service instance was deleted.")
				b.Operation.Cancelled = true
			}),
		},
		"RemovedWhileBound": {binds("create", 0, nil), bindingSucceeds("a bind succeeds", 1, granted),
			removed("LOP-19: a bind that has settled stays so", 2, nothing)},
		"RemovedWhileFailed": {binds("create", 0, nil), bindingFails("a bind fails", 1, lifecycle.CreateFailed),
			removed("LOP-19: a bind that has failed stays so", 2, nothing)},
		"RemovedWhileUnbinding": {
			binds("create", 0, nil),
			unbinds("delete", 2, cancelled(running("create", lifecycle.Bind, 0), 2)),
			removed("an unbind that runs ends well with its instance", 3, func(b *lifecycle.Record) {
				b.Operation = ended(b.Operation, lifecycle.Succeeded, 3, "")
			}),
		},
		"RemovedWhileUnbindFailed": {binds("create", 0, nil), bindingSucceeds("a bind succeeds", 1, granted),
			unbinds("delete", 2, bindEnded), bindingFails("an unbind fails", 3, lifecycle.DeleteFailed),
			removed("LOP-19: an unbind that has failed stays so", 4, nothing)},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { testStory(t, bindingKey, story) })
	}
}

// A tombstone keeps the names of its things and its operation: late steps and late polls
// are answered from it.
func TestTombstonesNameTheirThings(t *testing.T) {
	i := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed)
	if i.Key != instanceKey || i.Incarnation == "" || i.Provider == "" || i.Operation == nil || i.Created.IsZero() {
		t.Errorf("the instance's tombstone is %+v", i)
	}
	b := bindings.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed)
	if b.Key != bindingKey || b.Incarnation == "" || b.InstanceIncarnation == "" || b.Provider == "" || b.Attributes.ServiceID == "" ||
		b.Attributes.PlanID == "" || b.Operation == nil {
		t.Errorf("the binding's tombstone is %+v", b)
	}
}

// A new field of a record must be thought of in a tombstone: this lists those
// that may stay, and every other one is empty.
func TestTombstonesKeepNothingElse(t *testing.T) {
	keeps := map[string]bool{
		"Version": true, "Key": true, "State": true, "Operation": true, "Due": true, "Expires": true, "LateLook": true, "DeleteReceived": true,
		"CreateReceived": true, "Leases": true,
		"Incarnation": true, "InstanceIncarnation": true, "Provider": true, "Created": true, "Updated": true,
		"ServiceID": true, "PlanID": true, // catalog ids, which are nobody's data
	}
	leftovers := func(record any) (fields []string) {
		var walk func(v reflect.Value)
		walk = func(v reflect.Value) {
			for n := range v.NumField() {
				switch f := v.Type().Field(n); {
				case f.Name == "Attributes", f.Name == "InstanceOnly", f.Name == "BindingOnly":
					walk(v.Field(n))
				case !keeps[f.Name] && !v.Field(n).IsZero():
					fields = append(fields, f.Name)
				}
			}
		}
		walk(reflect.ValueOf(record))
		return fields
	}
	filled := func(m machine, kind lifecycle.Kind) lifecycle.Record {
		r := m.fresh
		r.Key, r.State, r.Operation = m.key, lifecycle.Deleting, running("delete", kind, 0)
		r.Leases = []lifecycle.Lease{{Holder: "h", Operation: "o", Taken: at(0), Until: at(1)}}
		r.Wary, r.AbsentSince, r.Unusable, r.Updated, r.Grant = true, at(0), true, at(1), lifecycle.Sealed("sealed grant")
		return r
	}
	i, err := filled(instances, lifecycle.Deprovision).Succeed(at(2), nil)
	expect.OK(t, err)
	b, err := filled(bindings, lifecycle.Unbind).Succeed(at(2), nil)
	expect.OK(t, err)
	r, err := filled(bindings, lifecycle.Unbind).Remove(at(2), at(1))
	expect.OK(t, err)
	for name, record := range map[string]any{"Instance": i, "Unbound": b, "Removed": r} {
		expect.Same(t, fmt.Sprintf("%s: fields that a tombstone should not keep", name), []string(nil), leftovers(record))
	}
}

// NFR-08: whether a tombstone still counts is decided by comparing times.
func TestForgotten(t *testing.T) {
	tomb := instances.after(t, lifecycle.Entomb)
	over := at(0).Add(lifecycle.Retention)
	tests := map[string]struct {
		reason string
		course lifecycle.Record
		now    time.Time
		want   bool
	}{
		"Young":   {"it counts", tomb, at(1), false},
		"Last":    {"it counts to the last moment", tomb, over.Add(-1), false},
		"Over":    {"its time is over", tomb, over, true},
		"Old":     {"it stays over", tomb, over.Add(time.Hour), true},
		"Alive":   {"what lives is never forgotten", lifecycle.Record{State: lifecycle.Ready, Expires: at(1)}, at(2), false},
		"Endless": {"a tombstone without a time is kept", lifecycle.Record{State: lifecycle.Deleted}, at(2), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect.Same(t, fmt.Sprintf("%s: forgotten", tc.reason), tc.want, tc.course.Forgotten(tc.now))
		})
	}
	if lifecycle.Retention < 34*time.Hour || lifecycle.Retention < 7*24*time.Hour || lifecycle.ReclaimAfter < 34*time.Hour {
		t.Error("ORB-05, LOP-13: platforms may ask for longer than what has ended is kept")
	}
}

func TestKinds(t *testing.T) {
	tests := map[lifecycle.Kind]bool{
		lifecycle.Provision: false, lifecycle.Update: false, lifecycle.Deprovision: true, lifecycle.Bind: false, lifecycle.Unbind: true,
	}
	for kind, want := range tests {
		expect.Same(t, fmt.Sprintf("kind %q deletes", kind), want, kind.Deletes())
	}
}
