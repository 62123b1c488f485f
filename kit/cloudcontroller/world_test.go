package cloudcontroller_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// A world is the whole broker in a bubble of time: its clock stands still while anything is done, and jumps when all wait.
type world struct {
	*testing.T
	http.Handler
	things    *cloudtest.Cloud
	reclaimed atomic.Int64 // by the reaper alone, which nobody may count on
}

// A flaw replaces a part of the broker by one that is broken, to prove that it would be noticed. The zero flaw replaces nothing.
type flaw struct {
	records   func(broker.Records) broker.Records
	steps     func(store.Store) store.Store // the store of workers alone
	leaseless bool                          // whoever took a lease is believed dead
}

const (
	synchronousWait = 15 * time.Second
	hardTimeout     = time.Minute
	username        = "platform"
	password        = testkit.Password
)

func now() time.Time { return time.Now().UTC() }

// newWorld is called within the bubble.
func newWorld(t *testing.T, slow slowness, f flaw) *world {
	t.Helper()
	dir := t.TempDir()
	records := expect.Get(bolt.Open(filepath.Join(dir, "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = records.Close() })
	things := cloudtest.NewCloud(now)
	w := &world{T: t, things: things}
	kit := testkit.New(testkit.Options{
		Store: records, Now: now, NewID: operationID, SynchronousWait: synchronousWait, CallTimeout: hardTimeout / 2,
		HardTimeout: hardTimeout,
		Providers:   map[string]provider.Provider{"demo": slow.over(cloudtest.Demo(things, 3*time.Second))},
	})
	o := kit.WorkerOptions()
	if f.steps != nil {
		o.Records = kit.LedgerOver(f.steps(records))
	}
	step := worker.New(o).Step
	if f.leaseless {
		o.Alone = true
		step = func(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
			return worker.New(o).Step(ctx, ref)
		}
	}
	engine := inprocess.New(step, inprocess.Options{Log: kit.Log})
	t.Cleanup(engine.Close)
	kit.Engine = engine
	decisions := kit.BrokerOptions()
	if f.records != nil {
		decisions.Records = f.records(decisions.Records)
	}
	w.Handler = kit.Handler(broker.New(decisions), testkit.Platforms{username: {ID: "p"}})
	w.sweep(kit.Reaper())
	return w
}

// sweep lets the reaper look each minute, as it does on AWS.
func (w *world) sweep(r *reaper.Reaper) {
	ctx, stop := context.WithCancel(context.Background())
	w.Cleanup(stop)
	go func() {
		for sleep(ctx, time.Minute) == nil {
			report, err := r.Sweep(ctx)
			if err != nil && ctx.Err() == nil {
				w.Errorf("sweep: %v", err)
			}
			w.reclaimed.Add(int64(report.Reclaimed))
		}
	}()
}

func operationID() string { return rand.Text()[:lifecycle.OperationIDLength] }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slowness makes one call to the cloud take as long as its caller can be alive, so that it may end after what has overtaken it.
type slowness struct {
	call  int // the n-th; 0 for none
	after bool
}

// over is a provider that is so slow. Its callers' deadlines do not end a call: it is on its way.
func (s slowness) over(p provider.Provider) provider.Provider {
	var calls atomic.Int64
	return providertest.Through{Provider: p, Call: func(ctx context.Context, _ provider.Instance, do providertest.Step) (
		provider.Status, error) {
		slow := int(calls.Add(1)) == s.call
		if slow && !s.after {
			time.Sleep(hardTimeout - 10*time.Second)
		}
		status, err := do(context.WithoutCancel(ctx))
		if slow && s.after {
			time.Sleep(hardTimeout - 10*time.Second)
		}
		return status, err
	}}
}

// held counts what exists.
func (w *world) held() int { return len(w.things.Things()) }

// answered is what the broker says to a request that no network stands before.
func (w *world) answered(method, path string) int {
	r := httptest.NewRequest(method, path, nil)
	r.SetBasicAuth(username, password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out.Code
}

// errNetwork is a connection that ended without an answer.
var errNetwork = errors.New("the connection broke")

// forgetful records do not tell when something was deleted.
func forgetful(r broker.Records) broker.Records { return forgetfulRecords{r} }

type forgetfulRecords struct{ broker.Records }

func (f forgetfulRecords) Record(ctx context.Context, key lifecycle.Key, at time.Time) (lifecycle.Record, error) {
	r, err := f.Records.Record(ctx, key, at)
	r.DeleteReceived = time.Time{}
	return r, err
}
