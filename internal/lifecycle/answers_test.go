package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// The outcomes of a request: the name of an answer, or the status of a refusal.
const (
	begin, join, stays, exists, missing = "begin", "join", "stays", "exists", "missing"

	ok = "ok"
	// ce is 422 with the code of a concurrency error, cannot is 422 without
	// a code.
	notFound, conflict, ce, cannot = "404", "409", "422 CE", "422"
)

func outcome(t *testing.T, a lifecycle.Answer, err error) string {
	t.Helper()
	if err == nil {
		known := map[lifecycle.Answer]string{lifecycle.Begin: begin, lifecycle.Join: join, lifecycle.Stays: stays,
			lifecycle.Exists:  exists,
			lifecycle.Missing: missing}
		if known[a] == "" {
			t.Errorf("answer %d is none", a)
		}
		return known[a]
	}
	var refusal *lifecycle.Refusal
	if !errors.As(err, &refusal) || a != 0 {
		t.Errorf("answer %d and error %v, want no answer and a refusal", a, err)
		return err.Error()
	}
	if refusal.Message == "" || refusal.Cause != nil {
		t.Errorf("the refusal says %q, because of %v", refusal.Message, refusal.Cause)
	}
	return map[lifecycle.Reason]string{
		lifecycle.NotFound: notFound, lifecycle.Conflict: conflict, lifecycle.ConcurrencyError: ce, lifecycle.Unprocessable: cannot,
	}[refusal.Reason]
}

// allowed is the outcome of a question that is answered by an error or none.
func allowed(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ok
	}
	return outcome(t, 0, err)
}

// Section 14.1: each row, for every way to come to it.
func TestInstanceAnswers(t *testing.T) {
	const (
		create, update, remove   = lifecycle.BeginCreate, lifecycle.BeginUpdate, lifecycle.BeginDelete
		succeed, failed, entombs = lifecycle.Succeed, lifecycle.Fail, lifecycle.Entomb
	)
	type row struct{ PutSame, PutDifferent, PatchSame, PatchOther, Delete, Get, Bind, Unbind string }
	type path = []lifecycle.Event
	tests := map[string]struct {
		reason string
		paths  []path
		// fails ends the last update, saying whether the instance is usable.
		fails bool
		says  *bool
		want  row
	}{
		"NeverExisted": {reason: "PROV-01, UPD-19, DEPR-03, GETI-02, BIND-06", paths: []path{{}},
			want: row{begin, begin, notFound, notFound, missing, notFound, notFound, ok}},
		"Provisioning": {reason: "PROV-10, PROV-11, UPD-20, DEPR-08, GETI-03, BIND-17",
			paths: []path{{create}, {entombs, create}, {create, failed, create}, {create, remove, succeed, create}},
			want:  row{join, conflict, ce, ce, begin, notFound, ce, ok}},
		"Ready": {reason: "PROV-07, PROV-08, UPD-01, DEPR-01, GETI-01, BIND-01",
			paths: []path{{create, succeed}, {entombs, create, succeed}, {create, succeed, update, succeed}},
			want:  row{exists, conflict, begin, begin, begin, ok, ok, ok}},
		"ProvisionFailed": {reason: "PROV-30, DEPR-12, GETI-07, BIND-17",
			paths: []path{{create, failed}, {create, failed, create, failed}},
			want:  row{stays, conflict, cannot, cannot, begin, notFound, cannot, ok}},
		"Updating": {reason: "CONC-01, UPD-21, UPD-22, DEPR-09, GETI-04, BIND-17, CONC-08",
			paths: []path{{create, succeed, update}, {create, succeed, update, failed, update}},
			want:  row{ce, conflict, join, ce, ce, ce, ce, ce}},
		"UpdateFailed": {reason: "UPD-25: who says nothing says usable", paths: []path{{create, succeed, update}},
			fails: true, want: row{exists, conflict, begin, begin, begin, ok, ok, ok}},
		"UpdateFailedUsable": {reason: "UPD-25", paths: []path{{create, succeed, update}}, fails: true, says: &yes,
			want: row{exists, conflict, begin, begin, begin, ok, ok, ok}},
		"UpdateFailedUnusable": {reason: "UPD-24, UPD-25, BIND-18, UNB-10", paths: []path{{create, succeed, update}},
			fails: true, says: &no, want: row{cannot, conflict, begin, begin, begin, ok, cannot, ok}},
		"Deprovisioning": {reason: "PROV-29, UPD-20, DEPR-07, GETI-05, BIND-17, CONC-08",
			paths: []path{{create, remove}, {create, succeed, remove}, {create, failed, remove, failed, remove}},
			want:  row{ce, conflict, ce, ce, join, ce, ce, ce}},
		"DeleteFailed": {reason: "DEPR-13, UNB-10",
			paths: []path{{create, remove, failed}, {create, succeed, remove, failed}},
			want:  row{cannot, conflict, cannot, cannot, begin, ok, cannot, ok}},
		"Deleted": {reason: "PROV-28, DEPR-04, DEPR-16, GETI-06",
			paths: []path{{entombs}, {entombs, entombs}, {create, remove, succeed}, {create, succeed, remove, succeed}},
			want:  row{begin, begin, notFound, notFound, missing, notFound, notFound, ok}},
	}
	covered := formerLives()
	for name, tc := range tests {
		for _, p := range tc.paths {
			t.Run(fmt.Sprint(name, len(p)), func(t *testing.T) {
				i := instances.after(t, p...)
				if tc.fails {
					i = failedWith(t, i, tc.says)
				}
				covered[i.State] = true
				before := deepCopy(i)
				put := func(same bool) string {
					a, err := onPut(i, same, true, at(60), at(60))
					return outcome(t, a, err)
				}
				patch := func(same bool) string {
					a, err := onPatch(i, same, at(60), at(60))
					return outcome(t, a, err)
				}
				deleted, err := onDelete(i, at(60), at(60))
				got := row{PutSame: put(true), PutDifferent: put(false), PatchSame: patch(true), PatchOther: patch(false),
					Delete: outcome(t, deleted, err), Get: allowed(t, onGet(i)), Bind: allowed(t, onBind(i, at(60), at(60))),
					Unbind: allowed(t, onUnbind(i))}
				same(t, "IDEM-01: "+tc.reason, tc.want, got)
				same(t, "CONC-02: a question changes nothing", before, i)
			})
		}
	}
	for _, s := range lifecycle.States() {
		if !covered[s] {
			t.Errorf("state %q has no row", name(s))
		}
	}
}

// formerLives are the states that no platform asks about.
func formerLives() map[lifecycle.State]bool {
	return map[lifecycle.State]bool{lifecycle.Quarantining: true, lifecycle.Quarantined: true, lifecycle.Releasing: true}
}

func failedWith(t *testing.T, r lifecycle.Record, usable *bool) lifecycle.Record {
	t.Helper()
	r, err := r.Fail(at(9), lifecycle.Failure{Message: "no room", InstanceUsable: usable})
	expect.OK(t, err)
	return r
}

// Section 14.2; "same id, other instance" is for whoever reads the pointer.
func TestBindingAnswers(t *testing.T) {
	const (
		create, remove, gone     = lifecycle.BeginCreate, lifecycle.BeginDelete, lifecycle.Remove
		succeed, failed, entombs = lifecycle.Succeed, lifecycle.Fail, lifecycle.Entomb
	)
	type row struct{ PutSame, PutDifferent, Delete, Get string }
	type path = []lifecycle.Event
	tests := map[string]struct {
		reason string
		paths  []path
		want   row
	}{
		"NeverExisted": {"UNB-02, GETB-02", []path{{}}, row{begin, begin, missing, notFound}},
		"Binding": {"BIND-23, UNB-08, GETB-02", []path{{create}, {entombs, create}, {create, failed, create}},
			row{join, conflict, begin, notFound}},
		"Bound": {"BIND-02, BIND-03, UNB-01, GETB-01", []path{{create, succeed}, {create, gone, create, succeed}},
			row{exists, conflict, begin, ok}},
		"BindFailed": {"UNB-11, GETB-02", []path{{create, failed}}, row{stays, conflict, begin, notFound}},
		"Unbinding": {"UNB-06, GETB-03", []path{{create, remove}, {create, succeed, remove}, {create, remove, failed, remove}},
			row{ce, conflict, join, ce}},
		"UnbindFailed": {"UNB-03", []path{{create, remove, failed}, {create, succeed, remove, failed}},
			row{cannot, conflict, begin, ok}},
		"Unbound": {
			"UNB-03, GETB-02, IDEM-09",
			[]path{{entombs}, {create, gone}, {create, succeed, gone}, {create, remove, failed, gone},
				{create, failed, create, remove, succeed}},
			row{begin, begin, missing, notFound},
		},
	}
	covered := formerLives()
	covered[lifecycle.Updating] = true // bindings are never updated
	for name, tc := range tests {
		for _, p := range tc.paths {
			t.Run(fmt.Sprint(name, len(p)), func(t *testing.T) {
				b := bindings.after(t, p...)
				covered[b.State] = true
				before := deepCopy(b)
				put := func(same bool) string {
					a, err := onPut(b, same, true, at(60), at(60))
					return outcome(t, a, err)
				}
				deleted, err := onDelete(b, at(60), at(60))
				got := row{PutSame: put(true), PutDifferent: put(false), Delete: outcome(t, deleted, err),
					Get: allowed(t, onGet(b))}
				same(t, "IDEM-07: "+tc.reason, tc.want, got)
				same(t, "CONC-02: a question changes nothing", before, b)
			})
		}
	}
	for _, s := range lifecycle.States() {
		if !covered[s] {
			t.Errorf("state %q has no row", name(s))
		}
	}
}

// ORB-03: a PUT that was sent before a deletion and arrives after it begins
// nothing, whatever it asks for.
func TestADeletionOvertakesARequest(t *testing.T) {
	received := at(5)
	entombed := func(p *pair, now, received time.Time) *pair {
		return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Entomb(now, received) })
	}
	// lived is another life, which a deletion ends.
	lived := func(p *pair, now, received time.Time) *pair {
		return p.does(func(r lifecycle.Record, m machine) (lifecycle.Record, error) {
			created, _, err := r.BeginCreate(start("life", at(0)), m.fresh)
			p.no(err)
			s := lifecycle.Start{ID: "deletion", Now: now, Received: received, Timeout: time.Hour}
			deleting, _, err := created.BeginDelete(s)
			p.no(err)
			return deleting.Succeed(now, nil)
		})
	}
	tests := map[string]struct {
		reason string
		make   func(*pair) *pair
	}{
		"NeverExisted": {"what was never seen is remembered as deleted", func(p *pair) *pair {
			return entombed(p, at(6), received)
		}},
		"Existed": {"so is what has lived", func(p *pair) *pair { return lived(p, at(6), received) }},
		"OlderEntombed": {"an older deletion that arrives later does not count", func(p *pair) *pair {
			return entombed(lived(p, at(6), received), at(7), at(4))
		}},
		"OlderBegun": {"also if it ends another life", func(p *pair) *pair {
			return lived(entombed(p, at(6), received), at(7), at(4))
		}},
		"Newer": {"a newer one does", func(p *pair) *pair {
			return entombed(lived(p, at(3), at(2)), at(6), received)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.make(newPair(t))
			for when, put := range map[string]struct {
				received time.Time
				want     string
			}{"before": {received.Add(-1), ce}, "at once": {received, ce}, "after": {received.Add(3 * time.Millisecond), begin}} {
				for _, same := range []bool{true, false} {
					a, err := onPut(p.instance, same, true, put.received, at(8))
					expect.Same(t, fmt.Sprintf("%s: a PUT of the instance, received %s", tc.reason, when), put.want,
						outcome(t, a, err))
					a, err = onPut(p.binding, same, true, put.received, at(8))
					expect.Same(t, fmt.Sprintf("%s: a PUT of the binding, received %s", tc.reason, when), put.want,
						outcome(t, a, err))
				}
			}
		})
	}
}

// While another operation holds the resource, the sentence is the one that
// clients know (ERR-04).
func TestConcurrencySentence(t *testing.T) {
	updating := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginUpdate)
	_, put := onPut(updating, true, true, at(60), at(60))
	_, patch := onPatch(updating, false, at(60), at(60))
	_, deletion := onDelete(updating, at(60), at(60))
	for what, err := range map[string]error{
		"PUT": put, "PATCH": patch, "DELETE": deletion, "GET": onGet(updating), "bind": onBind(updating, at(60), at(60)),
		"unbind": onUnbind(updating),
	} {
		var refusal *lifecycle.Refusal
		if !errors.As(err, &refusal) || refusal.Message != lifecycle.ConcurrencySentence {
			t.Errorf("%s is refused with %v, want %q", what, err, lifecycle.ConcurrencySentence)
		}
	}
}
