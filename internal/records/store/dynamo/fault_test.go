package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

func repeated(e event, times int) []event { return slices.Repeat([]event{e}, times) }

const (
	bad  = http.StatusBadRequest
	most = 12 // tries
)

// came is what came of a commit.
type came struct {
	outcome outcome
	version int64 // that the record then has, 0 if it is gone
	calls   int
}

// refusal is an error that says that nothing was done.
func refusal(code string) event { return refused(bad, code, "") }

var (
	throttled, collides = refusal("ThrottlingException"), refusal("TransactionConflictException")
	forbidden, noTable  = refusal("AccessDeniedException"), refusal("ResourceNotFoundException")
	serverError         = refused(http.StatusInternalServerError, "InternalServerError", "")
)

// A faultTest is a reason, what is committed, what comes of it, and what the calls meet.
type faultTest struct {
	reason string
	commit commit
	want   came
	events func(s *stand, t *testing.T) []event
}

// A commit is the call by which a test changes its record: by itself or, if several, with others.
type commit struct {
	call      string
	anonymous bool // has no writer
}

var put, anonymous, remove, several = commit{"PutItem", false}, commit{"PutItem", true}, commit{"DeleteItem", false},
	commit{"TransactWriteItems", false}

var faultTests = map[string]faultTest{
	// Calls that get no answer, or may have been done all the same.
	"LostPut": {"the next try meets its own version, and knows it by its writer", put, came{committed, 2, 2},
		are(lost)},
	"LostPutTwice":         {"also when that answer is lost", put, came{committed, 2, 3}, are(lost, lost)},
	"DroppedPut":           {"what never arrived is done by the next try", put, came{committed, 2, 2}, are(dropped)},
	"LostPutWithoutWriter": {"without a writer nothing can be known again", anonymous, came{unknown, 2, 2}, are(lost)},
	"LostPutOverrun": {"no conflict may be told where something was changed, even if another's change lies on top",
		put, came{unknown, 3, 2},
		func(s *stand, t *testing.T) []event { return []event{event(lost).then(func() { s.overrun(t) })} }},
	"DroppedPutOverrun": {"nor where nobody knows whether it was", put, came{unknown, 2, 2},
		func(s *stand, t *testing.T) []event { return []event{event(dropped).then(func() { s.overrun(t) })} }},
	"LostPutThenRefused": {"a refusal says nothing of the try before it", put, came{unknown, 2, 2}, are(lost, forbidden)},
	"LostPutThenCollisions": {"nor does a collision", put, came{unknown, 2, most},
		are(append([]event{lost}, repeated(collides, most)...)...)},
	"PutNeverAnswered": {"there is an end to trying", put, came{unknown, 2, most}, always(lost)},
	"LostConflict": {"what meets another's version once its answer was lost is not called a conflict", put,
		came{unknown, 2, 2}, func(s *stand, t *testing.T) []event {
			s.overrun(t)
			return []event{lost}
		}},
	"ServerError": {"an internal error may come after the work was done", put, came{committed, 2, 2}, are(serverError)},
	"UnknownServerError": {"also one without a name", put, came{committed, 2, 2},
		are(refused(http.StatusServiceUnavailable, "Oops", ""))},
	"ServerErrors": {"and says no more of it in the end", put, came{unknown, 1, most}, always(serverError)},
	"LostDelete": {"what is gone was removed by this commit or by another: it cannot be told", remove, came{unknown, 0, 2},
		are(lost)},
	"DroppedDelete":      {"what never arrived is done by the next try", remove, came{committed, 0, 2}, are(dropped)},
	"LostTransaction":    {"its token makes the next try the same one", several, came{committed, 2, 2}, are(lost)},
	"DroppedTransaction": {"what never arrived is done by the next try", several, came{committed, 2, 2}, are(dropped)},
	"TransactionInProgress": {"an earlier try is still under way", several, came{committed, 2, 3},
		are(lost, refusal("TransactionInProgressException"))},

	// Calls that DynamoDB refuses.
	"PutCollides": {"a collision passes", put, came{committed, 2, 3}, are(collides, collides)},
	"PutCollidesAlways": {"one that does not is a conflict: nothing was changed", put, came{conflict, 1, most},
		always(collides)},
	"DeleteCollides": {"a collision passes", remove, came{committed, 0, 2}, are(collides)},
	"TransactionCollides": {"a collision passes", several, came{committed, 2, 3},
		are(cancelled("None", "TransactionConflict", "None"), cancelled("TransactionConflict", "TransactionConflict"))},
	"TransactionCollidesAlways": {"one that does not is a conflict: nothing was changed", several, came{conflict, 1, most},
		always(cancelled("TransactionConflict", "None", "None"))},
	"TransactionThrottled": {"throttling passes", several, came{committed, 2, 3},
		are(cancelled("None", "ThrottlingError"), cancelled("ProvisionedThroughputExceeded", "None"))},
	"TransactionThrottledAlways": {"and is no conflict if it does not", several, came{unknown, 1, most},
		always(cancelled("None", "ThrottlingError"))},
	"ConditionWeighsMost": {"a condition that does not hold will not hold at the next try", several, came{conflict, 1, 1},
		are(cancelled("TransactionConflict", "ConditionalCheckFailed", "ThrottlingError"))},
	"CollisionWeighsMore": {"a collision is a conflict even if something was throttled as well", several,
		came{conflict, 1, most}, always(cancelled("ThrottlingError", "TransactionConflict"))},
	"TransactionInvalid": {"what one of the changes makes impossible is not tried again", several, came{invalid, 1, 1},
		are(cancelled("None", "ValidationError"))},
	"CancelledForUnknownReasons": {"a reason that is not known does not pass", several, came{unknown, 1, 1},
		are(cancelled("None", "SomethingNew"))},
	"CancelledForNoReason": {"nor does one that is not told", several, came{unknown, 1, 1}, are(cancelled())},
	"Throttled": {"throttling passes, under each of its names", put, came{committed, 2, 5},
		are(refusal("ProvisionedThroughputExceededException"), throttled,
			refusal("RequestLimitExceeded"), refusal("Throttling"))},
	"ThrottledAlways": {"it is neither a conflict nor anybody's mistake", put, came{unknown, 1, most}, always(throttled)},
	"Invalid": {"what DynamoDB cannot take is not tried again", put, came{invalid, 1, 1},
		are(refusal("ValidationException"))},
	"Forbidden": {"nor is what is not allowed", put, came{unknown, 1, 1}, are(forbidden)},
	"NoTable":   {"nor what has no table", several, came{unknown, 1, 1}, are(noTable)},
}

// TestFaults has what the emulator never does by itself: lost answers, collisions of transactions, throttling. Each test commits
// one change, or that change and others, of a record at version 1.
func TestFaults(t *testing.T) {
	s := newStand(t)
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			s.meet = nil
			r := fixture("faults", name)
			r.Writer = "first"
			r = s.put(t, r)
			next := r
			next.Writer = "mine"
			if test.commit.anonymous {
				next.Writer = ""
			}
			changes := []store.Change{store.Put(next)}
			switch test.commit {
			case remove:
				changes = []store.Change{store.Delete(r.Key, 1)}
			case several:
				changes = append(changes, store.Put(fixture("beside", name)),
					store.Check(store.Key{Partition: "none", Sort: name}, 0))
			}
			s.overrunning = r
			s.script(test.commit.call, test.events(s, t)...)
			s.slept = nil
			err := s.Commit(t.Context(), changes...)
			got := came{outcome: outcomeOf(err), calls: s.count()[test.commit.call]}
			now, readErr := s.other.Get(t.Context(), r.Key)
			if readErr != nil && !errors.Is(readErr, store.ErrNotFound) {
				t.Fatal(readErr)
			}
			got.version = now.Version
			expect.Same(t, fmt.Sprintf("%s (error %v)", test.reason, err), test.want, got, cmp.AllowUnexported(came{}))
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
	now.Writer = "another"
	if err := errors.Join(err, s.other.Commit(context.Background(), store.Put(now))); err != nil {
		t.Error(err) // from the goroutine of the call
	}
}

// Reads are repeated as writes are.
func TestReadFaults(t *testing.T) {
	s := newStand(t)
	r := s.put(t, fixture("p", "s"))
	reads := map[string]func() error{
		"GetItem":      func() error { return expect.Err(s.Get(t.Context(), r.Key)) },
		"Query":        func() error { return expect.Err(s.List(t.Context(), "p", "", "", 0)) },
		"BatchGetItem": func() error { return expect.Err(dues(t.Context(), s)) },
	}
	for call, read := range reads {
		t.Run(call, func(t *testing.T) {
			s.script(call, lost, dropped, throttled, serverError)
			expect.OK(t, read(), "what passes has not passed:")
			expect.Same(t, "calls", 5, s.count()[call])
			s.script(call, forbidden)
			if err := read(); outcomeOf(err) != unknown || errors.Is(err, store.ErrNotFound) {
				t.Errorf("what is forbidden: got error %v", err)
			}
			expect.Same(t, "tries of what is forbidden", 1, s.count()[call])
			s.script(call, noTable)
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
	s.script("PutItem", repeated(throttled, most)...)
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
	s := newStand(t)
	for name, test := range map[string]struct {
		reason string
		event  event
		want   outcome
	}{
		"Throttled": {"what was refused is known not to be done", throttled, unknown},
		"Collides":  {"a collision is then a conflict", collides, conflict},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			plain := dynamo.Paused(dynamo.New(s.sdk, s.table), func(ctx context.Context, _ time.Duration) error {
				cancel()
				return ctx.Err()
			}, nil, 0)
			s.script("PutItem", repeated(test.event, most)...)
			err := plain.Commit(ctx, store.Put(fixture("p", "s")))
			expect.Same(t, fmt.Sprintf("%s: the outcome of error %v", test.reason, err), test.want, outcomeOf(err))
			expect.Same(t, fmt.Sprintf("%s: tries", test.reason), 1, s.count()["PutItem"])
		})
	}
	t.Run("Waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		plain := dynamo.Paused(dynamo.New(s.sdk, s.table), nil, func() float64 { return 0.99 }, 0) // with its own timer
		refusals := repeated(throttled, most)
		refusals[2] = refusals[2].then(cancel)
		s.script("PutItem", refusals...)
		expect.Same(t, "the outcome", unknown, outcomeOf(plain.Commit(ctx, store.Put(fixture("p", "s")))))
		expect.Same(t, "tries, the context having ended in the third", 3, s.count()["PutItem"])
	})
	t.Run("InTheCall", func(t *testing.T) {
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
	quick := dynamo.Paused(dynamo.New(s.sdk, s.table), nil, nil, 200*time.Millisecond)
	s.meet = func(_ string, n int, r *http.Request) event {
		if n > 1 {
			return nil
		}
		return func(pass func() (*http.Response, error)) (*http.Response, error) {
			_, _ = lost(pass)
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	expect.OK(t, quick.Commit(t.Context(), store.Put(r)), "a put that hung after its work:")
	expect.Same(t, "the version that is read though it hung", 2, expect.Get(quick.Get(t.Context(), r.Key))(t).Version)
}
