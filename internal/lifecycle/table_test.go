package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func start(id string) lifecycle.Start {
	return lifecycle.Start{ID: id, Now: epoch, Received: epoch, Timeout: time.Hour}
}

var (
	instanceKey = lifecycle.Key{Platform: "p", Instance: "i"}
	bindingKey  = lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
)

// instanceIn is an instance in a state, as only legal events can make one.
func instanceIn(t *testing.T, s lifecycle.State) lifecycle.Instance {
	t.Helper()
	i := lifecycle.Instance{Course: lifecycle.Course{Key: instanceKey}}
	path := map[lifecycle.State][]lifecycle.Event{
		lifecycle.Absent:       nil,
		lifecycle.Creating:     {lifecycle.BeginCreate},
		lifecycle.Ready:        {lifecycle.BeginCreate, lifecycle.Succeed},
		lifecycle.Updating:     {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginUpdate},
		lifecycle.CreateFailed: {lifecycle.BeginCreate, lifecycle.Fail},
		lifecycle.Deleting:     {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete},
		lifecycle.DeleteFailed: {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Fail},
		lifecycle.Deleted:      {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed},
	}
	for _, e := range path[s] {
		next, err := applyToInstance(i, e)
		if err != nil {
			t.Fatalf("making an instance %q: %v", s, err)
		}
		i = next
	}
	if i.State != s {
		t.Fatalf("made an instance %q, want %q", i.State, s)
	}
	return i
}

func applyToInstance(i lifecycle.Instance, e lifecycle.Event) (lifecycle.Instance, error) {
	var err error
	switch e {
	case lifecycle.BeginCreate:
		i, _, err = i.BeginProvision(start("create"), instanceKey, "demo", lifecycle.Attributes{ServiceID: "s", PlanID: "p1"})
	case lifecycle.BeginUpdate:
		i, _, err = i.BeginUpdate(start("update"), lifecycle.Attributes{ServiceID: "s", PlanID: "p2"})
	case lifecycle.BeginDelete:
		i, _, err = i.BeginDeprovision(start("delete"))
	case lifecycle.Entomb:
		i, err = i.Entomb(instanceKey, epoch, epoch)
	case lifecycle.Succeed:
		i, err = i.Succeed(epoch)
	case lifecycle.Fail:
		i, err = i.Fail(epoch, lifecycle.Failure{Message: "why"})
	default:
		err = &lifecycle.IllegalTransition{State: i.State, Event: e} // no method does it
	}
	return i, err
}

func applyToBinding(b lifecycle.Binding, e lifecycle.Event) (lifecycle.Binding, error) {
	var err error
	switch e {
	case lifecycle.BeginCreate:
		b, _, err = b.BeginBind(start("create"), bindingKey, lifecycle.Binding{ServiceID: "s", PlanID: "p1", Secret: []byte("x")})
	case lifecycle.BeginDelete:
		b, _, err = b.BeginUnbind(start("delete"))
	case lifecycle.Entomb:
		b, err = b.Entomb(bindingKey, epoch, epoch)
	case lifecycle.Succeed:
		b, err = b.Succeed(epoch, []byte("grant"))
	case lifecycle.Fail:
		b, err = b.Fail(epoch, lifecycle.Failure{Message: "why"})
	case lifecycle.Remove:
		b, err = b.Remove(epoch)
	default:
		err = &lifecycle.IllegalTransition{State: b.State, Event: e}
	}
	return b, err
}

func bindingIn(t *testing.T, s lifecycle.State) lifecycle.Binding {
	t.Helper()
	b := lifecycle.Binding{Course: lifecycle.Course{Key: bindingKey}}
	path := map[lifecycle.State][]lifecycle.Event{
		lifecycle.Absent:       nil,
		lifecycle.Creating:     {lifecycle.BeginCreate},
		lifecycle.Ready:        {lifecycle.BeginCreate, lifecycle.Succeed},
		lifecycle.CreateFailed: {lifecycle.BeginCreate, lifecycle.Fail},
		lifecycle.Deleting:     {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete},
		lifecycle.DeleteFailed: {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Fail},
		lifecycle.Deleted:      {lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed},
	}
	for _, e := range path[s] {
		next, err := applyToBinding(b, e)
		if err != nil {
			t.Fatalf("making a binding %q: %v", s, err)
		}
		b = next
	}
	if b.State != s {
		t.Fatalf("made a binding %q, want %q", b.State, s)
	}
	return b
}

const no = lifecycle.State("refused")

// Every state and every event: the columns are in the order of Events().
// begin create, begin update, begin delete, entomb, succeed, fail, remove.
var instanceTable = map[lifecycle.State][7]lifecycle.State{
	lifecycle.Absent:       {lifecycle.Creating, no, no, lifecycle.Deleted, no, no, no},
	lifecycle.Creating:     {no, no, lifecycle.Deleting, no, lifecycle.Ready, lifecycle.CreateFailed, no},
	lifecycle.Ready:        {no, lifecycle.Updating, lifecycle.Deleting, no, no, no, no},
	lifecycle.Updating:     {no, no, no, no, lifecycle.Ready, lifecycle.Ready, no},
	lifecycle.CreateFailed: {lifecycle.Creating, no, lifecycle.Deleting, no, no, no, no},
	lifecycle.Deleting:     {no, no, no, no, lifecycle.Deleted, lifecycle.DeleteFailed, no},
	lifecycle.DeleteFailed: {no, no, lifecycle.Deleting, no, no, no, no},
	lifecycle.Deleted:      {lifecycle.Creating, no, no, lifecycle.Deleted, no, no, no},
}

var bindingTable = map[lifecycle.State][7]lifecycle.State{
	lifecycle.Absent:       {lifecycle.Creating, no, no, lifecycle.Deleted, no, no, no},
	lifecycle.Creating:     {no, no, lifecycle.Deleting, no, lifecycle.Ready, lifecycle.CreateFailed, lifecycle.Deleted},
	lifecycle.Ready:        {no, no, lifecycle.Deleting, no, no, no, lifecycle.Deleted},
	lifecycle.CreateFailed: {lifecycle.Creating, no, lifecycle.Deleting, no, no, no, lifecycle.Deleted},
	lifecycle.Deleting:     {no, no, no, no, lifecycle.Deleted, lifecycle.DeleteFailed, lifecycle.Deleted},
	lifecycle.DeleteFailed: {no, no, lifecycle.Deleting, no, no, no, lifecycle.Deleted},
	lifecycle.Deleted:      {lifecycle.Creating, no, no, lifecycle.Deleted, no, no, no},
}

func TestInstanceTransitions(t *testing.T) {
	for _, s := range lifecycle.States() {
		row, ok := instanceTable[s]
		if !ok {
			t.Fatalf("state %q has no row", s)
		}
		for n, e := range lifecycle.Events() {
			before := instanceIn(t, s)
			after, err := applyToInstance(before, e)
			if row[n] != no && (err != nil || after.State != row[n]) {
				t.Errorf("%q on %q: state %q, error %v; want %q", e, s, after.State, err, row[n])
			}
			if row[n] != no {
				continue
			}
			var illegal *lifecycle.IllegalTransition
			if !errors.As(err, &illegal) {
				t.Errorf("%q on %q: error %v, want a refusal", e, s, err)
			}
			if diff := cmp.Diff(instanceIn(t, s), after); diff != "" {
				t.Errorf("%q on %q was refused but changed it:\n%s", e, s, diff)
			}
		}
	}
}

func TestBindingTransitions(t *testing.T) {
	for _, s := range lifecycle.States() {
		if s == lifecycle.Updating {
			continue // bindings are never updated
		}
		row, ok := bindingTable[s]
		if !ok {
			t.Fatalf("state %q has no row", s)
		}
		for n, e := range lifecycle.Events() {
			before := bindingIn(t, s)
			after, err := applyToBinding(before, e)
			if row[n] != no && (err != nil || after.State != row[n]) {
				t.Errorf("%q on %q: state %q, error %v; want %q", e, s, after.State, err, row[n])
			}
			if row[n] != no {
				continue
			}
			var illegal *lifecycle.IllegalTransition
			if !errors.As(err, &illegal) {
				t.Errorf("%q on %q: error %v, want a refusal", e, s, err)
			}
			if diff := cmp.Diff(bindingIn(t, s), after); diff != "" {
				t.Errorf("%q on %q was refused but changed it:\n%s", e, s, diff)
			}
		}
	}
}

// Section 14.1 of the requirement list. An answer is the name of what happens,
// or the reason of the refusal.
func TestSection14Instances(t *testing.T) {
	const (
		begin, join, exists, missing = "begin", "join", "exists", "missing"
		ok, notFound, concurrency    = "ok", "404", "422 CE"
		conflict, cannot             = "409", "422"
	)
	table := map[lifecycle.State]struct{ same, different, patchSame, patchOther, delete, get, bind string }{
		lifecycle.Absent:       {begin, begin, notFound, notFound, missing, notFound, notFound},
		lifecycle.Creating:     {join, conflict, concurrency, concurrency, begin, notFound, concurrency},
		lifecycle.Ready:        {exists, conflict, begin, begin, begin, ok, ok},
		lifecycle.CreateFailed: {begin, conflict, cannot, cannot, begin, notFound, cannot},
		lifecycle.Updating:     {concurrency, conflict, join, concurrency, concurrency, concurrency, concurrency},
		lifecycle.Deleting:     {concurrency, conflict, concurrency, concurrency, join, concurrency, concurrency},
		lifecycle.DeleteFailed: {cannot, conflict, cannot, cannot, begin, ok, cannot},
		lifecycle.Deleted:      {begin, begin, notFound, notFound, missing, notFound, notFound},
	}
	name := func(a lifecycle.Answer, err error) string {
		var refusal *lifecycle.Refusal
		switch {
		case errors.As(err, &refusal):
			return map[lifecycle.Reason]string{
				lifecycle.NotFound: notFound, lifecycle.ConcurrencyError: concurrency, lifecycle.Conflict: conflict, lifecycle.Unprocessable: cannot,
			}[refusal.Reason]
		case err != nil:
			return err.Error()
		}
		return map[lifecycle.Answer]string{lifecycle.Begin: begin, lifecycle.Join: join, lifecycle.Exists: exists, lifecycle.Missing: missing, 0: ok}[a]
	}
	later := epoch.Add(time.Second)
	for _, s := range lifecycle.States() {
		i := instanceIn(t, s)
		want, listed := table[s]
		if !listed {
			t.Fatalf("state %q has no row", s)
		}
		got := want
		got.same = name(i.OnProvision(true, later))
		got.different = name(i.OnProvision(false, later))
		got.patchSame = name(i.OnUpdate(true))
		got.patchOther = name(i.OnUpdate(false))
		got.delete = name(i.OnDeprovision())
		got.get = name(0, i.OnRead())
		got.bind = name(0, i.OnBind())
		if got != want {
			t.Errorf("IDEM-01: %q answers %+v, want %+v", s, got, want)
		}
	}

	unusable := instanceIn(t, lifecycle.Updating)
	bad := false
	unusable, err := unusable.Fail(epoch, lifecycle.Failure{Message: "why", InstanceUsable: &bad})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{name(unusable.OnProvision(true, later)), name(unusable.OnUpdate(false)), name(unusable.OnDeprovision()), name(0, unusable.OnRead()), name(0, unusable.OnBind())}; !cmp.Equal(got, []string{cannot, begin, begin, ok, cannot}) {
		t.Errorf("an unusable instance answers %v", got)
	}

	// ORB-03: what was sent before the deletion begins nothing after it.
	tomb := instanceIn(t, lifecycle.Deleted)
	if got := name(tomb.OnProvision(false, epoch)); got != concurrency {
		t.Errorf("a PUT that the deletion overtook is answered %q", got)
	}
}

// Section 14.2.
func TestSection14Bindings(t *testing.T) {
	type row struct{ same, different, delete, get string }
	table := map[lifecycle.State]row{
		lifecycle.Absent:       {"begin", "begin", "missing", "404"},
		lifecycle.Creating:     {"join", "409", "begin", "404"},
		lifecycle.Ready:        {"exists", "409", "begin", "ok"},
		lifecycle.CreateFailed: {"begin", "409", "begin", "404"},
		lifecycle.Deleting:     {"422 CE", "409", "join", "404"},
		lifecycle.DeleteFailed: {"422", "409", "begin", "ok"},
		lifecycle.Deleted:      {"begin", "begin", "missing", "404"},
	}
	name := func(a lifecycle.Answer, err error) string {
		var refusal *lifecycle.Refusal
		if errors.As(err, &refusal) {
			return map[lifecycle.Reason]string{lifecycle.NotFound: "404", lifecycle.ConcurrencyError: "422 CE", lifecycle.Conflict: "409", lifecycle.Unprocessable: "422"}[refusal.Reason]
		}
		return map[lifecycle.Answer]string{lifecycle.Begin: "begin", lifecycle.Join: "join", lifecycle.Exists: "exists", lifecycle.Missing: "missing", 0: "ok"}[a]
	}
	later := epoch.Add(time.Second)
	for s, want := range table {
		b := bindingIn(t, s)
		got := row{name(b.OnBind(true, later)), name(b.OnBind(false, later)), name(b.OnUnbind(), nil), name(0, b.OnRead())}
		if got != want {
			t.Errorf("IDEM-07: %q answers %+v, want %+v", s, got, want)
		}
	}
	if got := name(bindingIn(t, lifecycle.Deleted).OnBind(true, epoch)); got != "422 CE" {
		t.Errorf("a bind that the deletion overtook is answered %q", got)
	}
}

func TestWhatEventsDo(t *testing.T) {
	updating := instanceIn(t, lifecycle.Updating)
	good, err := updating.Succeed(epoch)
	if err != nil || good.Attributes.PlanID != "p2" || good.Operation.Target != nil {
		t.Errorf("a good update left %+v: %v", good.Attributes, err)
	}
	bad, err := updating.Fail(epoch, lifecycle.Failure{Message: "why"})
	if err != nil || bad.Attributes.PlanID != "p1" || bad.Operation.Description != "why" {
		t.Errorf("UPD-23: a failed update left %+v: %v", bad.Attributes, err)
	}
	if updating.Operation.Phase != lifecycle.InProgress {
		t.Errorf("settling changed the record that it was made from")
	}

	creating := instanceIn(t, lifecycle.Creating)
	creating.Leases = []lifecycle.Lease{{Holder: "h", Operation: "create", Taken: epoch, Until: epoch.Add(time.Minute)}}
	overtaken, past, err := creating.BeginDeprovision(start("delete-2"))
	if err != nil || past == nil || past.Operation.ID != "create" || past.Operation.Phase != lifecycle.Failed || !past.Operation.Cancelled {
		t.Errorf("LOP-16: the overtaken operation is remembered as %+v: %v", past, err)
	}
	if until := overtaken.Busy("delete-2", epoch, time.Time{}); !until.Equal(epoch.Add(time.Minute)) {
		t.Errorf("the overtaken step's lease is gone: %v", until)
	}
	if until := overtaken.Busy("delete-2", epoch, epoch.Add(time.Second)); !until.IsZero() {
		t.Errorf("a lease of a dead process counts until %v", until)
	}
	late := epoch.Add(time.Hour)
	course := overtaken.Leased("h2", late, late.Add(time.Minute), time.Time{})
	if !course.Wary || len(course.Leases) != 1 {
		t.Errorf("a lease that ran out is forgotten: %+v", course)
	}
	first, proven := course.AbsenceSeen("delete-2", late, time.Time{})
	if proven {
		t.Errorf("one look proved the absence although a call may be on its way")
	}
	if _, proven := first.AbsenceSeen("delete-2", late.Add(lifecycle.SecondLook-1), time.Time{}); proven {
		t.Errorf("a second look too soon proved the absence")
	}
	if _, proven := first.AbsenceSeen("delete-2", late.Add(lifecycle.SecondLook), time.Time{}); !proven {
		t.Errorf("the second look did not prove the absence")
	}

	tomb := instanceIn(t, lifecycle.Deleted)
	if tomb.Attributes.ServiceID != "" || tomb.Attributes.Parameters != nil {
		t.Errorf("a tombstone keeps %+v", tomb.Attributes)
	}
	if tomb.Forgotten(epoch.Add(lifecycle.Retention-1)) || !tomb.Forgotten(epoch.Add(lifecycle.Retention)) {
		t.Errorf("NFR-08: a tombstone is forgotten at the wrong time")
	}
	gone := bindingIn(t, lifecycle.Deleted)
	if gone.Secret != nil || gone.Grant != nil || gone.Parameters != nil {
		t.Errorf("a binding's tombstone keeps a secret")
	}
	removed, err := bindingIn(t, lifecycle.Creating).Remove(epoch)
	if err != nil || removed.Operation.Phase != lifecycle.Failed || !removed.Operation.Cancelled {
		t.Errorf("a bind that ended with its instance reads %+v: %v", removed.Operation, err)
	}

	// The due time moves only when it would pass before the next look.
	running := instanceIn(t, lifecycle.Creating)
	soon := running.Looked(epoch, lifecycle.Look{After: 0})
	if !soon.Due.Equal(running.Due) {
		t.Errorf("the due time was rewritten from %v to %v", running.Due, soon.Due)
	}
	far := running.Looked(epoch, lifecycle.Look{After: 5 * time.Minute})
	if !far.Due.After(epoch.Add(5*time.Minute + lifecycle.Grace)) {
		t.Errorf("the operation would count as abandoned at %v", far.Due)
	}
	again := running.Redriven(epoch)
	if again.Current("create", 1) || !again.Current("create", 2) {
		t.Errorf("a step of an older attempt may act")
	}
}
