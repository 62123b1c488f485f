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
	do     func(lifecycle.Record) (lifecycle.Record, error)
	change func(*lifecycle.Record)
	minute int
	begins bool // an operation begins, which replaces another one
}

// testStory tells a story: after each deed the whole record is as before, except for what the deed
// changes. The operation that is replaced is remembered as it was, or as cancelled if it was running.
func testStory(t *testing.T, key lifecycle.Key, story []deed) {
	t.Helper()
	record := lifecycle.Record{Key: key}
	// Deeds never touch the version: that is whoever writes the record.
	record.Version = 7
	for n, d := range story {
		before := deepCopy(record)
		next, err := d.do(record)
		if err != nil {
			t.Fatalf("deed %d, %s: %v", n, d.reason, err)
		}
		same(t, d.reason+": the record it was made from", before, record)
		was, past := before.Operation, next.Past(record)
		d.change(&before)
		same(t, d.reason, before, next)
		if (past == nil) != (was == nil || !d.begins) {
			t.Fatalf("%s: it remembers %+v", d.reason, past)
		}
		if past != nil {
			if was.Phase == lifecycle.InProgress {
				was = ended(was, lifecycle.Failed, d.minute, "The operation was cancelled by a later deletion.")
				was.Cancelled = true
			}
			same(t, d.reason+": the operation that it replaces", was, &past.Operation)
			same(t, d.reason+": where it was", next.Key, past.Key)
			if want := next.Operation.Started.Add(lifecycle.Retention); !past.Expires.Equal(want) || past.Version != 0 {
				t.Errorf("%s: it expires at %v and has version %d, want %v and 0", d.reason, past.Expires, past.Version, want)
			}
		}
		record = next
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
	out.Phase, out.Settled, out.Next, out.Description, out.Faults = phase, at(minute), time.Time{}, description, 0
	if phase == lifecycle.Succeeded {
		out.Percent = 100
	}
	return &out
}

// creates begins what the machine is about. BeginCreate ignores members that a request cannot set.
func (m machine) creates(id string, minute int) deed {
	kind := lifecycle.Provision
	if m.key.IsBinding() {
		kind = lifecycle.Bind
	}
	return deed{
		reason: "a creation begins", minute: minute, begins: true,
		do: func(r lifecycle.Record) (lifecycle.Record, error) {
			fresh := m.fresh
			fresh.Version, fresh.State, fresh.Wary = 99, lifecycle.Ready, true
			fresh.Incarnation, fresh.Created, fresh.Unusable = "another", at(99), true
			return r.BeginCreate(start(id, at(minute)), fresh)
		},
		change: func(r *lifecycle.Record) {
			r.Provider, r.Attributes, r.BindingOnly = m.fresh.Provider, m.fresh.Attributes, m.fresh.BindingOnly
			r.Incarnation, r.Created, r.Updated = id, at(minute), time.Time{}
			r.Key, r.State, r.Operation = m.key, lifecycle.Creating, running(id, kind, minute)
			r.Due, r.Expires, r.LateLook = at(minute).Add(lifecycle.Grace), time.Time{}, time.Time{}
			r.CreateReceived = at(minute).Add(-time.Second)
		},
	}
}

func updates(id string, minute int, plan string) deed {
	return deed{
		reason: "an update begins, and the attributes stay as they are", minute: minute, begins: true,
		do: func(i lifecycle.Record) (lifecycle.Record, error) {
			return i.BeginUpdate(start(id, at(minute)), attributes(plan))
		},
		change: func(i *lifecycle.Record) {
			target := attributes(plan)
			i.State, i.Operation = lifecycle.Updating, running(id, lifecycle.Update, minute)
			i.Operation.Target = &target
			i.Due = at(minute).Add(lifecycle.Grace)
		},
	}
}

func deletes(id string, minute int) deed {
	return deed{
		reason: "a deletion begins, and the attributes stay for the steps that remove things", minute: minute, begins: true,
		do: func(r lifecycle.Record) (lifecycle.Record, error) {
			return r.BeginDelete(start(id, at(minute)))
		},
		change: func(r *lifecycle.Record) {
			kind := lifecycle.Unbind
			if !r.IsBinding() {
				kind = lifecycle.Deprovision
				r.Unfinished = r.Unfinished || r.State == lifecycle.Creating || r.State == lifecycle.CreateFailed
			}
			r.State, r.Operation = lifecycle.Deleting, running(id, kind, minute)
			r.Due, r.DeleteReceived = at(minute).Add(lifecycle.Grace), at(minute).Add(-time.Second)
		},
	}
}

// settles ends the operation, which is due no more.
func settles(reason string, phase lifecycle.Phase, minute int, message string,
	do func(lifecycle.Record) (lifecycle.Record, error), change func(*lifecycle.Record)) deed {
	return deed{reason: reason, do: do, change: func(r *lifecycle.Record) {
		r.Operation, r.Due = ended(r.Operation, phase, minute, message), time.Time{}
		change(r)
	}}
}

// succeeds ends an operation well; a binding gets its grant.
func succeeds(reason string, minute int, change func(*lifecycle.Record)) deed {
	return settles(reason, lifecycle.Succeeded, minute, "", func(r lifecycle.Record) (lifecycle.Record, error) {
		if r.IsBinding() {
			return r.Succeed(at(minute), lifecycle.Sealed("sealed grant"))
		}
		return r.Succeed(at(minute), nil)
	}, change)
}

func fails(reason string, minute int, f lifecycle.Failure, change func(*lifecycle.Record)) deed {
	return settles(reason, lifecycle.Failed, minute, f.Message,
		func(r lifecycle.Record) (lifecycle.Record, error) { return r.Fail(at(minute), f) }, change)
}

// entombs is a deletion, received at a minute, of what there is not.
func entombs(reason string, minute, received int, change func(*lifecycle.Record)) deed {
	return deed{reason: reason, change: change, do: func(r lifecycle.Record) (lifecycle.Record, error) {
		return r.Entomb(at(minute), at(received))
	}}
}

func ready(i *lifecycle.Record) { i.State = lifecycle.Ready }

func granted(b *lifecycle.Record) {
	b.State, b.Grant = lifecycle.Ready, lifecycle.Sealed("sealed grant")
}

func updated(minute int, plan string) func(i *lifecycle.Record) {
	return func(i *lifecycle.Record) {
		i.State, i.Attributes, i.Operation.Target, i.Unusable, i.Updated = lifecycle.Ready, attributes(plan), nil, false, at(minute)
	}
}

// notUpdated is an instance whose update has failed, with what it says of the instance.
func notUpdated(unusable bool, usable, repeatable *bool) func(i *lifecycle.Record) {
	return func(i *lifecycle.Record) {
		i.State, i.Operation.Target, i.Unusable = lifecycle.Ready, nil, unusable
		i.Operation.InstanceUsable, i.Operation.UpdateRepeatable = usable, repeatable
	}
}

// buried is a tombstone: only what names things is left.
func buried(minute int) func(*lifecycle.Record) {
	return func(r *lifecycle.Record) {
		r.State, r.Unusable = lifecycle.Deleted, false
		r.Attributes = lifecycle.Attributes{ServiceID: r.Attributes.ServiceID, PlanID: r.Attributes.PlanID}
		r.BindingOnly = lifecycle.BindingOnly{InstanceIncarnation: r.InstanceIncarnation}
		r.Expires, r.LateLook = at(minute).Add(lifecycle.Retention), at(minute).Add(lifecycle.LateLook)
		r.Due, r.Wary, r.AbsentSince = r.LateLook, false, time.Time{}
	}
}

// entombed is a tombstone of what never was: nothing can come late of it.
func entombed(key lifecycle.Key, minute int) func(*lifecycle.Record) {
	return func(r *lifecycle.Record) {
		buried(minute)(r)
		r.Key, r.DeleteReceived, r.Due, r.LateLook = key, at(0), r.Expires, time.Time{}
	}
}

func inCourse(reason string, do func(lifecycle.Record) lifecycle.Record, change func(*lifecycle.Record)) deed {
	return deed{reason: reason, do: func(i lifecycle.Record) (lifecycle.Record, error) { return do(i), nil },
		change: change}
}

func instanceStories() map[string][]deed {
	lease := lifecycle.Lease{Holder: "step", Operation: "create", Taken: at(1), Until: at(3)}
	return map[string][]deed{
		"WholeLife": {
			instances.creates("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large"),
			succeeds("an update succeeds: its target is what the instance is", 4, updated(4, "large")),
			inCourse("UPD-15: a context alone is no operation", func(i lifecycle.Record) lifecycle.Record {
				return i.SetContext(lifecycle.Attributes{Context: json.RawMessage(`{"a":1}`)}, at(5))
			}, func(i *lifecycle.Record) { i.Attributes.Context, i.Updated = json.RawMessage(`{"a":1}`), at(5) }),
			deletes("delete", 6),
			succeeds("a tombstone keeps no user's data", 7, buried(7)),
			entombs("a deletion of what is deleted already keeps the tombstone for longer", 8, 8, func(i *lifecycle.Record) {
				i.DeleteReceived, i.Expires = at(8), at(8).Add(lifecycle.Retention)
			}),
			instances.creates("again", 9),
		},
		"Overtaken": {
			instances.creates("create", 0),
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
			}, func(c *lifecycle.Record) { c.Operation.Faults, c.Operation.Next = 1, at(1).Add(time.Second) }),
			deletes("delete", 2), // LOP-16; the lease stays, for the deletion to wait for
			inCourse("the overtaken step gives its lease up", func(c lifecycle.Record) lifecycle.Record { return c.Released("step") },
				func(c *lifecycle.Record) { c.Leases = nil }),
			succeeds("what the creation made is gone", 4, buried(4)),
		},
		"FailedAndRepeated": {
			instances.creates("create", 0),
			fails("LOP-15: no flags come with a failed creation; it is reclaimed later (ORB-04)", 2,
				lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &no}, func(i *lifecycle.Record) {
					i.State, i.Due = lifecycle.CreateFailed, at(2).Add(lifecycle.ReclaimAfter)
				}),
			instances.creates("again", 3),
			succeeds("PROV-30: it succeeds at last", 4, ready),
		},
	}
}

func instanceFailures() map[string][]deed {
	failure := lifecycle.Failure{Message: "no room"}
	return map[string][]deed{
		"FailedUpdates": {
			instances.creates("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large"),
			fails("UPD-23: a failed update leaves the attributes as they were", 4, failure, notUpdated(false, nil, nil)),
			updates("update-2", 5, "large"),
			fails("UPD-24: it says that the instance is unusable", 6,
				lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &yes}, notUpdated(true, &no, &yes)),
			updates("repair", 7, "small"),
			fails("ERR-10: a repair that fails without a word repairs nothing, and says so", 8, lifecycle.Overdue(),
				notUpdated(true, &no, nil)),
			updates("repair-2", 9, "small"),
			succeeds("UPD-25: a repair succeeds", 10, updated(10, "small")),
			updates("update-3", 11, "large"),
			fails("it says that the instance is unusable", 12, lifecycle.Failure{InstanceUsable: &no}, notUpdated(true, &no, nil)),
			updates("repair-3", 13, "large"),
			fails("a repair that fails may still say that the instance is usable again", 14, lifecycle.Failure{InstanceUsable: &yes},
				notUpdated(false, &yes, nil)),
		},
		"UnusableAndDeleted": {
			instances.creates("create", 0),
			succeeds("a creation succeeds", 2, ready),
			updates("update", 3, "large"),
			fails("it leaves the instance unusable", 4, lifecycle.Failure{InstanceUsable: &no}, notUpdated(true, &no, nil)),
			deletes("delete", 5),
			succeeds("the tombstone is not unusable", 6, buried(6)),
		},
		"FailedDeletion": {
			instances.creates("create", 0),
			succeeds("a creation succeeds", 2, ready),
			deletes("delete", 3),
			fails("DEPR-13, ERR-10: part may be gone, whatever the provider says; only one flag comes with it", 4,
				lifecycle.Failure{Message: "no room", InstanceUsable: &yes, UpdateRepeatable: &yes}, func(i *lifecycle.Record) {
					i.State, i.Operation.InstanceUsable, i.Due = lifecycle.DeleteFailed, &no, at(4).Add(lifecycle.ReclaimAfter)
				}),
			deletes("delete-2", 5),
			succeeds("DEPR-13: it succeeds at last", 6, buried(6)),
		},
		"RefusedDeletion": {
			instances.creates("create", 0),
			succeeds("a creation succeeds", 2, ready),
			deletes("delete", 3),
			fails("ERR-10: nothing was touched: it is as it was, and nobody deletes it but who asks again", 4,
				lifecycle.Failure{Message: "not empty", InstanceUsable: &yes, Untouched: true}, notUpdated(false, &yes, nil)),
		},
		"NeverExisted": {
			entombs("ORB-01: a deletion of what does not exist is remembered", 1, 0, entombed(instanceKey, 1)),
			entombs("one that was held up on its way does not move it back", 2, -5, entombed(instanceKey, 2)),
			instances.creates("create", 3),
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

func bindingFails(reason string, minute int, state lifecycle.State) deed {
	f := lifecycle.Failure{Message: "no room", InstanceUsable: &no, UpdateRepeatable: &no}
	return fails(reason, minute, f, func(b *lifecycle.Record) { b.State, b.Due = state, at(minute).Add(lifecycle.ReclaimAfter) })
}

func removed(reason string, minute int, change func(*lifecycle.Record)) deed {
	return deed{
		reason: reason,
		do: func(b lifecycle.Record) (lifecycle.Record, error) {
			return b.Remove(at(minute), at(minute).Add(-time.Second))
		},
		change: func(b *lifecycle.Record) {
			b.DeleteReceived = at(minute).Add(-time.Second)
			buried(minute)(b)
			change(b)
		},
	}
}

func TestBindingStories(t *testing.T) {
	nothing := func(*lifecycle.Record) {}
	create, again, remove := bindings.creates("create", 0), bindings.creates("again", 5), deletes("delete", 2)
	for name, story := range map[string][]deed{
		"WholeLife": {
			create,
			succeeds("a bind succeeds with its grant", 1, granted),
			remove,
			succeeds("a tombstone keeps no secret; an unbind gives no grant", 3, buried(3)),
			entombs("an unbind of what is unbound keeps the tombstone for longer", 4, -5,
				func(b *lifecycle.Record) { b.Expires = at(4).Add(lifecycle.Retention) }),
			again, // IDEM-09
		},
		"FailedAndRepeated": {
			create,
			bindingFails("LOB-01: no flags come with a binding; the secret stays for what removes it", 1, lifecycle.CreateFailed),
			again,
		},
		"FailedUnbind": {create, succeeds("a bind succeeds", 1, granted), remove,
			bindingFails("an unbind fails", 3, lifecycle.DeleteFailed), deletes("delete-2", 4)},
		"Overtaken":    {create, remove}, // UNB-08
		"NeverExisted": {entombs("ORB-02", 1, 0, entombed(bindingKey, 1)), again},
		"RemovedWhileBinding": {
			create,
			removed("a bind that runs ends badly with its instance", 2, func(b *lifecycle.Record) {
				b.Operation = ended(b.Operation, lifecycle.Failed, 2, "The service instance was deleted.")
				b.Operation.Cancelled = true
			}),
		},
		"RemovedWhileBound": {create, succeeds("a bind succeeds", 1, granted),
			removed("LOP-19: a bind that has settled stays so", 2, nothing)},
		"RemovedWhileFailed": {create, bindingFails("a bind fails", 1, lifecycle.CreateFailed),
			removed("LOP-19: a bind that has failed stays so", 2, nothing)},
		"RemovedWhileUnbinding": {
			create,
			remove,
			removed("an unbind that runs ends well with its instance", 3, func(b *lifecycle.Record) {
				b.Operation = ended(b.Operation, lifecycle.Succeeded, 3, "")
			}),
		},
		"RemovedWhileUnbindFailed": {create, succeeds("a bind succeeds", 1, granted), remove,
			bindingFails("an unbind fails", 3, lifecycle.DeleteFailed),
			removed("LOP-19: an unbind that has failed stays so", 4, nothing)},
	} {
		t.Run(name, func(t *testing.T) { testStory(t, bindingKey, story) })
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
	i := expect.Get(filled(instances, lifecycle.Deprovision).Succeed(at(2), nil))(t)
	b := expect.Get(filled(bindings, lifecycle.Unbind).Succeed(at(2), nil))(t)
	r := expect.Get(filled(bindings, lifecycle.Unbind).Remove(at(2), at(1)))(t)
	for name, record := range map[string]any{"Instance": i, "Unbound": b, "Removed": r} {
		expect.Same(t, fmt.Sprintf("%s: fields that a tombstone should not keep", name), []string(nil), leftovers(record))
	}
}

// NFR-08: whether a tombstone still counts is decided by comparing times.
func TestForgotten(t *testing.T) {
	tomb := instances.after(t, lifecycle.Entomb)
	over := at(0).Add(lifecycle.Retention)
	for name, tc := range map[string]struct {
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
	} {
		expect.Same(t, fmt.Sprintf("%s: %s: forgotten", name, tc.reason), tc.want, tc.course.Forgotten(tc.now))
	}
	if lifecycle.Retention < 34*time.Hour || lifecycle.Retention < 7*24*time.Hour || lifecycle.ReclaimAfter < 34*time.Hour {
		t.Error("ORB-05, LOP-13: platforms may ask for longer than what has ended is kept")
	}
}
