package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
)

// An outcome is what came of a history.
type outcome struct {
	faults, orphans, duplicates int
	wrong                       []error
	story                       string
}

// play lives through a history.
func play(s Subject, p plan, g *Safeguard) outcome {
	w := newWorld(s, p, g)
	// The table is the right one.
	if err := w.ledger.Commit(context.Background(), ledger.Put(whose)); err != nil {
		panic(err)
	}
	for _, a := range p.script {
		if len(w.wrong) > 0 {
			break
		}
		w.do(a)
	}
	orphans := 0
	if len(w.wrong) == 0 {
		w.rest()
		w.logged()
		w.listed()
		orphans = w.judge()
	}
	for _, t := range w.still {
		t.resume <- false
		<-t.ended
	}
	return outcome{
		faults: w.struck, orphans: orphans, duplicates: w.doubles, wrong: w.wrong,
		story: fmt.Sprintf("%s\n%s", w, strings.Join(w.transcript, "\n")),
	}
}

// rest lets everything come to its end: what is on its way lands, what stands
// still goes on or ends, and the reaper looks for as long as it takes until it
// has twice found nothing.
func (w *world) rest() {
	w.tell("what is left comes to its end")
	for range 200 {
		if len(w.visits) == 0 && len(w.still) == 0 && len(w.late) == 0 {
			break
		}
		w.goOn()
	}
	// Late looks, sightings and adoptions.
	for range 12 {
		w.sweep(30 * time.Minute)
		for range 200 {
			if len(w.visits) == 0 && len(w.still) == 0 {
				break
			}
			w.goOn()
		}
	}
	if len(w.visits) > 0 {
		w.fail("executions never end: %v", w.visits)
	}
}

// logged requires one entry in the history of its instance for each operation whose end the
// platform has seen, with the same end.
func (w *world) logged() {
	instances, entries := map[lifecycle.Key]bool{}, map[string][]lifecycle.Phase{}
	for t := range w.ended {
		key := t.Key.InstanceKey()
		if instances[key] {
			continue
		}
		instances[key] = true
		page := func(ctx context.Context, cursor string) ([]lifecycle.Entry, string, error) {
			return w.ledger.History(ctx, key, cursor, 0)
		}
		for e, err := range paging.All(context.Background(), page) {
			if err != nil {
				w.fail("the history of %v cannot be read: %v", key, err)
			}
			entries[e.ID] = append(entries[e.ID], e.Phase)
		}
	}
	for t, phase := range w.ended {
		if found := entries[t.Operation]; len(found) != 1 || found[0] != phase {
			w.fail("%s has %s, and its history says %q", t, phase, found)
		}
	}
}

// listed requires that the directory has the records of instances that exist, and no other.
func (w *world) listed() {
	exist := map[lifecycle.Key]bool{}
	for r, err := range w.ledger.Scan(context.Background()) {
		if err != nil {
			w.fail("a record cannot be read: %v", err)
		} else if !r.IsBinding() && r.Exists() {
			exist[r.Key] = true
		}
	}
	listed, next, unread := w.ledger.Instances(context.Background(), "", "", 0)
	for _, key := range listed {
		if !exist[key] {
			w.fail("%+v is listed, and does not exist or is listed twice", key)
		}
		delete(exist, key)
	}
	if len(exist) > 0 || next != "" || unread != nil {
		w.fail("the directory lacks %v; its next page is %q; %v", exist, next, unread)
	}
}

// goneIsGone requires that what a platform was told is gone does not exist, as
// long as no call lands later than any lease lasts.
func (w *world) goneIsGone() {
	for _, kind := range w.faults {
		if kind == veryLate {
			return
		}
	}
	for _, h := range w.holdings() {
		if w.record(keyOf(h)).State == lifecycle.Deleted && !w.life(h).Exists() {
			w.fail("%s exists although its deletion was done", h.Name)
		}
	}
}

// life is what is recorded of the former life that a thing is of.
func (w *world) life(h provider.Holding) lifecycle.Record {
	return w.record(keyOf(h).Former(h.Tags.Incarnation))
}

func keyOf(h provider.Holding) lifecycle.Key {
	return lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding}
}

func (w *world) holdings() (out []provider.Holding) {
	for h, err := range paging.All(context.Background(), w.holds.List) {
		if err != nil {
			panic(err)
		}
		out = append(out, h)
	}
	return out
}

// record is what is recorded of a key.
func (w *world) record(key lifecycle.Key) lifecycle.Record {
	r, err := w.ledger.Record(context.Background(), key, w.now())
	if err != nil {
		panic(err)
	}
	return r
}

// judge compares what the platform believes, what is recorded, and what exists.
func (w *world) judge() (orphans int) {
	exist := map[lifecycle.Key]provider.Holding{}
	for _, h := range w.whatIsKept() {
		if _, twice := exist[keyOf(h)]; twice {
			w.doubles++
			w.fail("there are two things of %+v", keyOf(h))
		}
		exist[keyOf(h)] = h
	}
	made := exist[instanceKey()]
	for _, key := range []lifecycle.Key{instanceKey(), bindingKey("b"), bindingKey("c")} {
		c := w.record(key)
		h, exists := exist[key]
		delete(exist, key)
		believed := w.has[key]
		// A lease that ran out is what a process left that died; it only makes a
		// later deletion look twice.
		if c.InProgress() || !c.Busy("", w.now(), nil).IsZero() {
			w.fail("%+v is not at rest: %q, operation %+v, leases %v", key, c.State, c.Operation, c.Leases)
		}
		if believed != (c.State == lifecycle.Ready) {
			w.fail("the platform believes that %+v exists: %v; the record is %q", key, believed, c.State)
		}
		if believed && !exists {
			w.fail("%+v is lost", key)
		}
		if exists && !believed {
			orphans++
			w.fail("%+v is left behind", key)
		}
		if exists && h.Tags.Incarnation != c.Incarnation && !w.lacks(Incarnation) { // without, every one is the same
			w.fail("what exists of %+v is of incarnation %q, the record's is %q", key, h.Tags.Incarnation, c.Incarnation)
		}
	}
	if h := made; w.has[instanceKey()] && h.PlanID != "" && h.PlanID != w.platform.plan {
		w.fail("what exists is of plan %q, and the platform asked for %q", h.PlanID, w.platform.plan)
	}
	for key := range exist {
		orphans++
		w.fail("%+v is left behind, and nobody asked for it", key)
	}
	w.grantsOpen()
	w.sameAnswers()
	w.nothingLeaks()
	return orphans
}

// whatIsKept compares what is kept with its records, and gives all else that exists. A release that lands
// later than any lease lasts may unlock what was deleted again since: the record's date counts.
func (w *world) whatIsKept() (rest []provider.Holding) {
	lost := !w.data.IsZero()
	kept := map[lifecycle.Key]lifecycle.Record{}
	for _, r := range w.kept() {
		kept[r.Key] = r
		if len(r.Leases) > 0 && !r.Busy("", w.now(), nil).IsZero() {
			w.fail("%+v is kept, and not at rest: leases %v", r.Key, r.Leases)
		}
	}
	for _, h := range w.holdings() {
		key := keyOf(h).Former(h.Tags.Incarnation)
		r, is := kept[key]
		delete(kept, key)
		released := is && h.RetainedUntil.IsZero() && w.lateRelease
		other := is != !h.RetainedUntil.IsZero() || is && !r.Kept.Until.Equal(h.RetainedUntil) && r.Kept.Freed.IsZero()
		if other && !released {
			w.fail("%s is kept until %v, and on record: %v, %+v", h.Name, h.RetainedUntil, is, r.Kept)
		}
		lost = lost && (h.Tags.Binding != "" || !h.Created.Equal(w.data))
		if !is {
			rest = append(rest, h)
		}
	}
	for key := range kept {
		w.fail("%+v is on record as kept, and does not exist", key)
	}
	if lost {
		w.fail("what was made at %v and was to be kept is lost", w.data)
	}
	return rest
}

// grantsOpen requires that what is recorded of each binding is accepted.
func (w *world) grantsOpen() {
	for _, key := range []lifecycle.Key{bindingKey("b"), bindingKey("c")} {
		r := w.record(key)
		if w.subject.Opens == nil || r.State != lifecycle.Ready {
			continue
		}
		var g provider.Grant
		plain, err := w.key.Open(context.Background(), vault.Label{Key: key, Member: vault.Grant}, r.Grant)
		if err == nil {
			err = json.Unmarshal(plain, &g)
		}
		opens := false
		if err == nil {
			opens, err = w.subject.Opens(w.cloud, &g)
		}
		if err != nil || !opens {
			w.fail("the grant of %+v opens nothing: %v", key, err)
		}
	}
}

// sameAnswers requires that each operation reads as it did, and that the same
// request is answered by what is.
func (w *world) sameAnswers() {
	for t, phase := range w.ended {
		p, err := w.broker.Operation(context.Background(), w.callerAt(w.now()), t.String())
		if err != nil || p.Operation.Phase != phase {
			w.fail("LOP-19: %s had %s, and reads %q, %v", t, phase, p.Operation.Phase, err)
		}
	}
	if w.has[instanceKey()] {
		_, send := w.provision()
		if r, err := send(context.Background()); err != nil || r.Effect != broker.Done {
			w.fail("PROV-07: the same PUT is answered %+v %v", r, err)
		}
	}
	if !w.has[instanceKey()] {
		_, err := w.broker.Delete(context.Background(),
			broker.DeleteRequest{Caller: w.caller(), InstanceID: "i", ServiceID: serviceID, PlanID: planA})
		var refusal *lifecycle.Refusal
		if !errors.As(err, &refusal) || refusal.Reason != lifecycle.Gone {
			w.fail("DEPR-04: a DELETE of what is gone is answered %v", err)
		}
	}
}

// nothingLeaks looks for the canary in the log and in what is stored.
func (w *world) nothingLeaks() {
	if strings.Contains(w.log.String(), canary) {
		w.fail("the log tells a secret")
	}
	for _, key := range []lifecycle.Key{instanceKey(), bindingKey("b"), bindingKey("c")} {
		sort := "INSTANCE"
		if key.IsBinding() {
			sort = "BINDING#" + key.Binding
		}
		r, err := w.records.Get(context.Background(), store.Key{Partition: "I#p#i", Sort: sort})
		if err == nil && bytes.Contains(r.Body, []byte(canary)) {
			w.fail("the record of %+v has a secret in clear", key)
		}
	}
}
