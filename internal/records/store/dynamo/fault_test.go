package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/expect"
)

// An outcome is what a commit's answer says.
type outcome string

const (
	committed outcome = "committed"
	conflict  outcome = "conflict"
	invalid   outcome = "invalid"
	unknown   outcome = "unknown" // any other error
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return committed
	case errors.Is(err, store.ErrConflict):
		return conflict
	case errors.Is(err, store.ErrInvalid):
		return invalid
	default:
		return unknown
	}
}

func repeated(e event, times int) []event {
	var all []event
	for range times {
		all = append(all, e)
	}
	return all
}

const (
	bad  = http.StatusBadRequest
	most = 12 // tries
)

const put, remove, several = "PutItem", "DeleteItem", "TransactWriteItems"

// came is what came of a commit.
type came struct {
	outcome outcome
	version int64 // that the record then has, 0 if it is gone
	calls   int
}

type faultTest struct {
	reason string
	call   string
	events func(s *stand, t *testing.T) []event
	want   came
	// anonymous commits have no writer.
	anonymous bool
}

// unansweredTests are calls that get no answer, or may have been done all the same.
func unansweredTests() map[string]faultTest {
	return map[string]faultTest{
		"LostPut": {reason: "the next try meets its own version, and knows it by its writer", call: put, events: are(lost),
			want: came{committed, 2, 2}},
		"LostPutTwice": {reason: "also when that answer is lost", call: put, events: are(lost, lost),
			want: came{committed, 2, 3}},
		"DroppedPut": {reason: "what never arrived is done by the next try", call: put, events: are(dropped),
			want: came{committed, 2, 2}},
		"LostPutWithoutWriter": {reason: "without a writer nothing can be known again", call: put, events: are(lost),
			anonymous: true, want: came{unknown, 2, 2}},
		"LostPutOverrun": {reason: "no conflict may be told where something was changed, even if another's change lies on top",
			call: put, want: came{unknown, 3, 2}, events: func(s *stand, t *testing.T) []event {
				return []event{event(lost).then(func() { s.overrun(t) })}
			}},
		"DroppedPutOverrun": {reason: "nor where nobody knows whether it was", call: put, want: came{unknown, 2, 2},
			events: func(s *stand, t *testing.T) []event {
				return []event{event(dropped).then(func() { s.overrun(t) })}
			}},
		"LostPutThenRefused": {reason: "a refusal says nothing of the try before it", call: put,
			events: are(lost, refused(bad, "AccessDeniedException", "")), want: came{unknown, 2, 2}},
		"LostPutThenCollisions": {reason: "nor does a collision", call: put, want: came{unknown, 2, most},
			events: func(*stand, *testing.T) []event {
				return append([]event{lost}, repeated(refused(bad, "TransactionConflictException", ""), most)...)
			}},
		"PutNeverAnswered": {reason: "there is an end to trying", call: put, events: always(lost),
			want: came{unknown, 2, most}},
		"LostConflict": {reason: "what meets another's version once its answer was lost is not called a conflict", call: put,
			want: came{unknown, 2, 2}, events: func(s *stand, t *testing.T) []event {
				s.overrun(t)
				return []event{lost}
			}},
		"ServerError": {reason: "an internal error may come after the work was done", call: put,
			events: are(refused(http.StatusInternalServerError, "InternalServerError", "")), want: came{committed, 2, 2}},
		"UnknownServerError": {reason: "also one without a name", call: put,
			events: are(refused(http.StatusServiceUnavailable, "Oops", "")), want: came{committed, 2, 2}},
		"ServerErrors": {reason: "and says no more of it in the end", call: put,
			events: always(refused(http.StatusInternalServerError, "InternalServerError", "")), want: came{unknown, 1, most}},
		"LostDelete": {reason: "what is gone was removed by this commit or by another: it cannot be told", call: remove,
			events: are(lost), want: came{unknown, 0, 2}},
		"DroppedDelete": {reason: "what never arrived is done by the next try", call: remove, events: are(dropped),
			want: came{committed, 0, 2}},
		"LostTransaction": {reason: "its token makes the next try the same one", call: several, events: are(lost),
			want: came{committed, 2, 2}},
		"DroppedTransaction": {reason: "what never arrived is done by the next try", call: several, events: are(dropped),
			want: came{committed, 2, 2}},
		"TransactionInProgress": {reason: "an earlier try is still under way", call: several,
			events: are(lost, refused(bad, "TransactionInProgressException", "")), want: came{committed, 2, 3}},
	}
}

// refusedTests are calls that DynamoDB refuses.
func refusedTests() map[string]faultTest {
	return map[string]faultTest{
		"PutCollides": {reason: "a collision passes", call: put,
			events: are(repeated(refused(bad, "TransactionConflictException", ""), 2)...), want: came{committed, 2, 3}},
		"PutCollidesAlways": {reason: "one that does not is a conflict: nothing was changed", call: put,
			events: always(refused(bad, "TransactionConflictException", "")), want: came{conflict, 1, most}},
		"DeleteCollides": {reason: "a collision passes", call: remove,
			events: are(refused(bad, "TransactionConflictException", "")), want: came{committed, 0, 2}},
		"TransactionCollides": {reason: "a collision passes",
			call: several, events: are(cancelled("None", "TransactionConflict", "None"),
				cancelled("TransactionConflict", "TransactionConflict")), want: came{committed, 2, 3}},
		"TransactionCollidesAlways": {reason: "one that does not is a conflict: nothing was changed", call: several,
			events: always(cancelled("TransactionConflict", "None", "None")), want: came{conflict, 1, most}},
		"TransactionThrottled": {reason: "throttling passes", call: several,
			events: are(cancelled("None", "ThrottlingError"), cancelled("ProvisionedThroughputExceeded", "None")),
			want:   came{committed, 2, 3}},
		"TransactionThrottledAlways": {reason: "and is no conflict if it does not", call: several,
			events: always(cancelled("None", "ThrottlingError")), want: came{unknown, 1, most}},
		"ConditionWeighsMost": {reason: "a condition that does not hold will not hold at the next try", call: several,
			events: are(cancelled("TransactionConflict", "ConditionalCheckFailed", "ThrottlingError")),
			want:   came{conflict, 1, 1}},
		"CollisionWeighsMore": {reason: "a collision is a conflict even if something was throttled as well", call: several,
			events: always(cancelled("ThrottlingError", "TransactionConflict")), want: came{conflict, 1, most}},
		"TransactionInvalid": {reason: "what one of the changes makes impossible is not tried again", call: several,
			events: are(cancelled("None", "ValidationError")), want: came{invalid, 1, 1}},
		"CancelledForUnknownReasons": {reason: "a reason that is not known does not pass", call: several,
			events: are(cancelled("None", "SomethingNew")), want: came{unknown, 1, 1}},
		"CancelledForNoReason": {reason: "nor does one that is not told", call: several, events: are(cancelled()),
			want: came{unknown, 1, 1}},
		"Throttled": {reason: "throttling passes, under each of its names",
			call: put, want: came{committed, 2, 5},
			events: are(refused(bad, "ProvisionedThroughputExceededException", ""), refused(bad, "ThrottlingException", ""),
				refused(bad, "RequestLimitExceeded", ""), refused(bad, "Throttling", ""))},
		"ThrottledAlways": {reason: "it is neither a conflict nor anybody's mistake", call: put,
			events: always(refused(bad, "ThrottlingException", "")), want: came{unknown, 1, most}},
		"Invalid": {reason: "what DynamoDB cannot take is not tried again", call: put,
			events: are(refused(bad, "ValidationException", "")), want: came{invalid, 1, 1}},
		"Forbidden": {reason: "nor is what is not allowed", call: put,
			events: are(refused(bad, "AccessDeniedException", "")), want: came{unknown, 1, 1}},
		"NoTable": {reason: "nor what has no table", call: several,
			events: are(refused(bad, "ResourceNotFoundException", "")), want: came{unknown, 1, 1}},
	}
}

// TestFaults has what the emulator never does by itself: lost answers, collisions of
// transactions, throttling. Each test commits one change, or that change and others, of a
// record at version 1.
func TestFaults(t *testing.T) {
	tests := unansweredTests()
	maps.Copy(tests, refusedTests())
	s := newStand(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s.meet = nil
			r := fixture("faults", name)
			r.Writer = "first"
			r = s.put(t, r)
			next := r
			next.Writer = "mine"
			if test.anonymous {
				next.Writer = ""
			}
			changes := []store.Change{store.Put(next)}
			switch test.call {
			case remove:
				changes = []store.Change{store.Delete(r.Key, 1)}
			case several:
				changes = append(changes, store.Put(fixture("beside", name)),
					store.Check(store.Key{Partition: "none", Sort: name}, 0))
			}
			s.overrunning = r
			s.script(test.call, test.events(s, t)...)
			s.slept = nil
			err := s.Commit(t.Context(), changes...)
			got := came{outcome: outcomeOf(err), calls: s.count()[test.call]}
			now, readErr := s.other.Get(t.Context(), r.Key)
			if readErr != nil && !errors.Is(readErr, store.ErrNotFound) {
				t.Fatal(readErr)
			}
			got.version = now.Version
			if d := cmp.Diff(test.want, got, cmp.AllowUnexported(came{})); d != "" {
				t.Errorf("%s (error %v): -want +got:\n%s", test.reason, err, d)
			}
			expect.Same(t, fmt.Sprintf("waits between %d tries", got.calls), got.calls-1, len(s.slept))
		})
	}
}

// are is a script of events that need nothing of the stand.
func are(events ...event) func(*stand, *testing.T) []event {
	return func(*stand, *testing.T) []event { return events }
}

func always(e event) func(*stand, *testing.T) []event { return are(repeated(e, 2*most)...) }

// overrun has another change the record that the test is about.
func (s *stand) overrun(t *testing.T) {
	t.Helper()
	now, err := s.other.Get(context.Background(), s.overrunning.Key)
	if err != nil {
		t.Error(err)
		return
	}
	now.Writer = "another"
	if err := s.other.Commit(context.Background(), store.Put(now)); err != nil {
		t.Error(err)
	}
}

// Reads are repeated as writes are.
func TestReadFaults(t *testing.T) {
	s := newStand(t)
	r := s.put(t, fixture("p", "s"))
	reads := map[string]func() error{
		"GetItem": func() error { _, err := s.Get(t.Context(), r.Key); return err },
		"Query":   func() error { _, err := s.List(t.Context(), "p", "", "", 0); return err },
		"BatchGetItem": func() error {
			return all(func(c string) (store.Page, error) { return s.Due(t.Context(), due, c) }, nil)
		},
	}
	for call, read := range reads {
		t.Run(call, func(t *testing.T) {
			s.script(call, lost, dropped, refused(bad, "ThrottlingException", ""),
				refused(http.StatusInternalServerError, "InternalServerError", ""))
			if err := read(); err != nil {
				t.Errorf("what passes has not passed: %v", err)
			}
			expect.Same(t, "calls", 5, s.count()[call])
			s.script(call, refused(bad, "AccessDeniedException", ""))
			if err := read(); outcomeOf(err) != unknown || errors.Is(err, store.ErrNotFound) {
				t.Errorf("what is forbidden: got error %v", err)
			}
			expect.Same(t, "tries of what is forbidden", 1, s.count()[call])
			s.script(call, refused(bad, "ResourceNotFoundException", ""))
			if err := read(); errors.Is(err, store.ErrNotFound) || err == nil {
				t.Errorf("a table that is missing is taken for a record that is: %v", err)
			}
		})
	}
}

// Pauses grow, are spread, and have an end.
func TestPauses(t *testing.T) {
	s := newStand(t)
	r := fixture("p", "s")
	s.script("PutItem", repeated(refused(bad, "ThrottlingException", ""), most)...)
	if err := s.Commit(t.Context(), store.Put(r)); err == nil {
		t.Fatal("the commit succeeded")
	}
	var want []time.Duration
	for _, ms := range []int{10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000} {
		want = append(want, time.Duration(ms)*time.Millisecond) // half of the longest
	}
	expect.Same(t, "pauses", want, s.slept)
}

// The context ends the waiting, at once.
func TestContextEndsTheWaiting(t *testing.T) {
	tests := map[string]struct {
		reason string
		event  event
		want   outcome
	}{
		"Throttled": {"what was refused is known not to be done", refused(bad, "ThrottlingException", ""), unknown},
		"Collides":  {"a collision is then a conflict", refused(bad, "TransactionConflictException", ""), conflict},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			ctx, cancel := context.WithCancel(t.Context())
			plain := dynamo.New(s.sdk, s.table, dynamo.Options{Sleep: func(ctx context.Context, _ time.Duration) error {
				cancel()
				return ctx.Err()
			}})
			s.script("PutItem", repeated(test.event, most)...)
			err := plain.Commit(ctx, store.Put(fixture("p", "s")))
			expect.Same(t, fmt.Sprintf("%s: the outcome of error %v", test.reason, err), test.want, outcomeOf(err))
			expect.Same(t, fmt.Sprintf("%s: tries", test.reason), 1, s.count()["PutItem"])
		})
	}
	t.Run("Waiting", func(t *testing.T) {
		s := newStand(t)
		ctx, cancel := context.WithCancel(t.Context())
		plain := dynamo.New(s.sdk, s.table, dynamo.Options{Jitter: func() float64 { return 0.99 }}) // with its own timer
		refusals := repeated(refused(bad, "ThrottlingException", ""), most)
		refusals[2] = refusals[2].then(cancel)
		s.script("PutItem", refusals...)
		expect.Same(t, "the outcome", unknown, outcomeOf(plain.Commit(ctx, store.Put(fixture("p", "s")))))
		expect.Same(t, "tries, the context having ended in the third", 3, s.count()["PutItem"])
	})
	t.Run("InTheCall", func(t *testing.T) {
		s := newStand(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.script("PutItem", event(lost).then(cancel))
		err := s.Commit(ctx, store.Put(fixture("p", "s")))
		if outcomeOf(err) != unknown || !errors.Is(err, context.Canceled) {
			t.Errorf("a commit whose answer was lost to the context: %v", err)
		}
	})
}

// A try that hangs does not take the time of the ones after it.
func TestHangingTry(t *testing.T) {
	s := newStand(t)
	r := s.put(t, fixture("p", "s"))
	quick := dynamo.New(s.sdk, s.table, dynamo.Options{TryTimeout: 200 * time.Millisecond})
	hangs := func(r *http.Request) event {
		return func(pass func() (*http.Response, error)) (*http.Response, error) {
			_, _ = lost(pass)
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	s.scriptOf("PutItem", hangs)
	if err := quick.Commit(t.Context(), store.Put(r)); err != nil {
		t.Errorf("a put that hung after its work: %v", err)
	}
	s.scriptOf("GetItem", hangs)
	if got, err := quick.Get(t.Context(), r.Key); err != nil || got.Version != 2 {
		t.Errorf("a read that hung: version %d, error %v", got.Version, err)
	}
}
