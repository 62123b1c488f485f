package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
)

// loadTests are about many writers at once.
var loadTests = map[string]func(*testing.T, *Harness){
	"Counter":  testCounter,
	"Transfer": testTransfer,
}

// counter is a record whose body is a number.
func counter(sort string, n int) store.Record {
	r := resting(key("counters", sort))
	r.Body = []byte(strconv.Itoa(n))
	return r
}

func add(r store.Record, n int) (store.Record, error) {
	was, err := strconv.Atoi(string(r.Body))
	r.Body = []byte(strconv.Itoa(was + n))
	return r, err
}

// retry calls f until it is neither in conflict nor out of time.
func retry(ctx context.Context, f func() error) error {
	for {
		if err := f(); !errors.Is(err, store.ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func testCounter(t *testing.T, h *Harness) {
	const writers, times = 8, 20
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := counter("total", 0) // whoever comes first makes it
	errs := together(writers, func(int) error {
		for range times {
			err := retry(ctx, func() error {
				now, err := h.Store.Get(ctx, r.Key)
				if errors.Is(err, store.ErrNotFound) {
					now, err = r, nil
				}
				if err != nil {
					return err
				}
				next, err := add(now, 1)
				if err != nil {
					return err
				}
				return h.Store.Commit(ctx, store.Put(next))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	r = counter("total", writers*times)
	r.Version = writers * times
	isStored(t, h.Store, "no update is lost and none is made twice", r)
}

func testTransfer(t *testing.T, h *Harness) {
	const writers, auditors, times, start = 6, 2, 12, 1000
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	keys := make([]store.Key, 3)
	for i := range keys {
		keys[i] = put(t, h.Store, counter(fmt.Sprint(i), start)).Key
	}
	var working atomic.Int64
	working.Store(writers)
	errs := together(writers+auditors, func(i int) error {
		if i >= writers {
			for working.Load() > 0 {
				if err := retry(ctx, func() error { return audit(ctx, h.Store, keys, len(keys)*start) }); err != nil {
					return err
				}
			}
			return nil
		}
		defer working.Add(-1)
		for j := range times {
			from, to := keys[(i+j)%3], keys[(i+j+1+i%2)%3]
			if err := retry(ctx, func() error { return transfer(ctx, h.Store, from, to, i+j+1) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := audit(ctx, h.Store, keys, len(keys)*start); err != nil {
		t.Fatal(err)
	}
	versions := int64(0)
	for _, r := range list(t, h.Store, "counters", "") {
		versions += r.Version
	}
	if want := int64(len(keys) + 2*writers*times); versions != want {
		t.Errorf("the versions add up to %d, want %d", versions, want)
	}
}

func transfer(ctx context.Context, s store.Store, from, to store.Key, amount int) error {
	a, err := s.Get(ctx, from)
	if err != nil {
		return err
	}
	b, err := s.Get(ctx, to)
	if err != nil {
		return err
	}
	less, err := add(a, -amount)
	if err != nil {
		return err
	}
	more, err := add(b, amount)
	if err != nil {
		return err
	}
	return s.Commit(ctx, store.Put(less), store.Put(more))
}

// audit reads the counters one by one, and then has a commit prove that they
// were all so at one moment.
func audit(ctx context.Context, s store.Store, keys []store.Key, want int) error {
	sum := 0
	var checks []store.Change
	for _, k := range keys {
		r, err := s.Get(ctx, k)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(r.Body))
		if err != nil {
			return err
		}
		sum += n
		checks = append(checks, store.Check(k, r.Version))
	}
	if err := s.Commit(ctx, checks...); err != nil {
		return err
	}
	if sum != want {
		return fmt.Errorf("at one moment the counters added up to %d, want %d", sum, want)
	}
	return nil
}
