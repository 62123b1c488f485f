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
	// ce is 422 with the code of a concurrency error, in the sentence that clients know, and late the same in another sentence;
	// cannot is 422 without a code.
	notFound, conflict, ce, late, cannot = "404", "409", "422 CE", "422 CE, late", "422"
)

func outcome(t *testing.T, a lifecycle.Answer, err error) string {
	t.Helper()
	if err == nil {
		known := map[lifecycle.Answer]string{lifecycle.Begin: begin, lifecycle.Join: join, lifecycle.Stays: stays,
			lifecycle.Exists: exists, lifecycle.Missing: missing}
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
	if refusal.Reason == lifecycle.ConcurrencyError && refusal.Message != lifecycle.ConcurrencySentence {
		return late
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

// A row is what each request comes to in a state. Of bindings only the first four are asked.
type row struct{ PutSame, PutDifferent, Delete, Get, PatchSame, PatchOther, Bind, Unbind string }

// answered is the row of a record.
func answered(t *testing.T, r lifecycle.Record) row {
	t.Helper()
	ask := func(a lifecycle.Answer, err error) string { return outcome(t, a, err) }
	got := row{PutSame: ask(onPut(r, true, true, at(60), at(60))), PutDifferent: ask(onPut(r, false, true, at(60), at(60))),
		Delete: ask(onDelete(r, at(60), at(60))), Get: allowed(t, onGet(r))}
	if !r.IsBinding() {
		got.PatchSame, got.PatchOther = ask(onPatch(r, true, at(60), at(60))), ask(onPatch(r, false, at(60), at(60)))
		got.Bind, got.Unbind = allowed(t, onBind(r, at(60), at(60))), allowed(t, onUnbind(r))
	}
	return got
}

// A state is come to by events, of which each path is one way.
type reached struct {
	reason string
	paths  [][]lifecycle.Event
	want   row
	// fails ends the last update, saying whether the instance is usable.
	fails bool
	says  *bool
}

// testAnswers requires the rows, and one for each state that platforms ask about.
func testAnswers(t *testing.T, m machine, rule string, tests map[string]reached, others ...lifecycle.State) {
	covered := map[lifecycle.State]bool{}
	for _, s := range append(others, lifecycle.Quarantining, lifecycle.Quarantined, lifecycle.Releasing) {
		covered[s] = true
	}
	for name, tc := range tests {
		for _, p := range tc.paths {
			t.Run(fmt.Sprint(name, len(p)), func(t *testing.T) {
				r := m.after(t, p...)
				if tc.fails {
					r = expect.Get(r.Fail(at(9), lifecycle.Failure{Message: "no room", InstanceUsable: tc.says}))(t)
				}
				covered[r.State] = true
				before := deepCopy(r)
				same(t, rule+": "+tc.reason, tc.want, answered(t, r))
				same(t, "a question changes nothing", before, r)
			})
		}
	}
	for _, s := range lifecycle.States() {
		if !covered[s] {
			t.Errorf("state %q has no row", name(s))
		}
	}
}

const (
	create, update, remove  = lifecycle.BeginCreate, lifecycle.BeginUpdate, lifecycle.BeginDelete
	succeed, failed, entomb = lifecycle.Succeed, lifecycle.Fail, lifecycle.Entomb
)

type path = []lifecycle.Event

// Section 14.1: each row, for every way to come to it. CONC-02: a question changes nothing. ERR-04: while another operation
// holds the resource, the sentence is the one that clients know.
func TestInstanceAnswers(t *testing.T) {
	testAnswers(t, instances, "IDEM-01", map[string]reached{
		"NeverExisted": {reason: "PROV-01, UPD-19, DEPR-03, GETI-02, BIND-06", paths: []path{{}},
			want: row{begin, begin, missing, notFound, notFound, notFound, notFound, ok}},
		"Provisioning": {reason: "PROV-10, PROV-11, UPD-20, DEPR-08, GETI-03, BIND-17",
			paths: []path{{create}, {entomb, create}, {create, failed, create}, {create, remove, succeed, create}},
			want:  row{join, conflict, begin, notFound, ce, ce, ce, ok}},
		"Ready": {reason: "PROV-07, PROV-08, UPD-01, DEPR-01, GETI-01, BIND-01",
			paths: []path{{create, succeed}, {entomb, create, succeed}, {create, succeed, update, succeed}},
			want:  row{exists, conflict, begin, ok, begin, begin, ok, ok}},
		"ProvisionFailed": {reason: "PROV-30, DEPR-12, GETI-07, BIND-17",
			paths: []path{{create, failed}, {create, failed, create, failed}},
			want:  row{stays, conflict, begin, notFound, cannot, cannot, cannot, ok}},
		"Updating": {reason: "CONC-01, UPD-21, UPD-22, DEPR-09, GETI-04, BIND-17, CONC-08",
			paths: []path{{create, succeed, update}, {create, succeed, update, failed, update}},
			want:  row{ce, conflict, ce, ce, join, ce, ce, ce}},
		"UpdateFailed": {reason: "UPD-25: who says nothing says usable", paths: []path{{create, succeed, update}},
			fails: true, want: row{exists, conflict, begin, ok, begin, begin, ok, ok}},
		"UpdateFailedUsable": {reason: "UPD-25", paths: []path{{create, succeed, update}}, fails: true, says: &yes,
			want: row{exists, conflict, begin, ok, begin, begin, ok, ok}},
		"UpdateFailedUnusable": {reason: "UPD-24, UPD-25, BIND-18, UNB-10", paths: []path{{create, succeed, update}},
			fails: true, says: &no, want: row{cannot, conflict, begin, ok, begin, begin, cannot, ok}},
		"Deprovisioning": {reason: "PROV-29, UPD-20, DEPR-07, GETI-05, BIND-17, CONC-08",
			paths: []path{{create, remove}, {create, succeed, remove}, {create, failed, remove, failed, remove}},
			want:  row{ce, conflict, join, ce, ce, ce, ce, ce}},
		"DeleteFailed": {reason: "DEPR-13, UNB-10", paths: []path{{create, remove, failed}, {create, succeed, remove, failed}},
			want: row{cannot, conflict, begin, ok, cannot, cannot, cannot, ok}},
		"Deleted": {reason: "PROV-28, DEPR-04, DEPR-16, GETI-06",
			paths: []path{{entomb}, {entomb, entomb}, {create, remove, succeed}, {create, succeed, remove, succeed}},
			want:  row{begin, begin, missing, notFound, notFound, notFound, notFound, ok}},
	})
}

// Section 14.2; "same id, other instance" is for whoever reads the pointer. No binding is updated.
// CONC-02: a question changes nothing.
func TestBindingAnswers(t *testing.T) {
	const gone = lifecycle.Remove
	rowOf := func(putSame, putDifferent, delete, get string) row {
		return row{PutSame: putSame, PutDifferent: putDifferent, Delete: delete, Get: get}
	}
	testAnswers(t, bindings, "IDEM-07", map[string]reached{
		"NeverExisted": {reason: "UNB-02, GETB-02", paths: []path{{}}, want: rowOf(begin, begin, missing, notFound)},
		"Binding": {reason: "BIND-23, UNB-08, GETB-02", paths: []path{{create}, {entomb, create}, {create, failed, create}},
			want: rowOf(join, conflict, begin, notFound)},
		"Bound": {reason: "BIND-02, BIND-03, UNB-01, GETB-01", paths: []path{{create, succeed}, {create, gone, create, succeed}},
			want: rowOf(exists, conflict, begin, ok)},
		"BindFailed": {reason: "UNB-11, GETB-02", paths: []path{{create, failed}}, want: rowOf(stays, conflict, begin, notFound)},
		"Unbinding": {reason: "UNB-06, GETB-03",
			paths: []path{{create, remove}, {create, succeed, remove}, {create, remove, failed, remove}},
			want:  rowOf(ce, conflict, join, ce)},
		"UnbindFailed": {reason: "UNB-03", paths: []path{{create, remove, failed}, {create, succeed, remove, failed}},
			want: rowOf(cannot, conflict, begin, ok)},
		"Unbound": {reason: "UNB-03, GETB-02, IDEM-09",
			paths: []path{{entomb}, {create, gone}, {create, succeed, gone}, {create, remove, failed, gone},
				{create, failed, create, remove, succeed}}, want: rowOf(begin, begin, missing, notFound)},
	}, lifecycle.Updating)
}

// ORB-03: a PUT that was sent before a deletion and arrives after it begins nothing, whatever it asks for.
func TestADeletionOvertakesARequest(t *testing.T) {
	received := at(5)
	entombed := func(p *pair, now, received time.Time) *pair {
		return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Entomb(now, received) })
	}
	// lived is another life, which a deletion ends.
	lived := func(p *pair, now, received time.Time) *pair {
		return p.begins(at(0), at(0).Add(-time.Second)).isDeleted(now, received).ends(now)
	}
	p := newPair(t)
	for name, tc := range map[string]struct {
		reason string
		is     *pair
	}{
		"NeverExisted":  {"what was never seen is remembered as deleted", entombed(p, at(6), received)},
		"Existed":       {"so is what has lived", lived(p, at(6), received)},
		"OlderEntombed": {"an older deletion that comes later does not count", entombed(lived(p, at(6), received), at(7), at(4))},
		"OlderBegun":    {"also if it ends another life", lived(entombed(p, at(6), received), at(7), at(4))},
		"Newer":         {"a newer one does", entombed(lived(p, at(3), at(2)), at(6), received)},
	} {
		t.Run(name, func(t *testing.T) {
			for when, put := range map[string]struct {
				received time.Time
				want     string
			}{"before": {received.Add(-1), late}, "at once": {received, late},
				"after": {received.Add(3 * time.Millisecond), begin}} {
				for _, same := range []bool{true, false} {
					tc.is.both(t, tc.reason+": a PUT, "+when, put.want, func(r lifecycle.Record) (lifecycle.Answer, error) {
						return onPut(r, same, true, put.received, at(8))
					})
				}
			}
		})
	}
}
