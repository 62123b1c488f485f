package reaper_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/reaper"
)

// metered counts what a store is asked and what it gives.
type metered struct {
	store.Store
	calls, records int
}

func (m *metered) Get(ctx context.Context, k store.Key) (store.Record, error) {
	m.calls++
	m.records++
	return m.Store.Get(ctx, k)
}

func (m *metered) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	page, err := m.Store.List(ctx, partition, prefix, after, limit)
	m.calls++
	m.records += len(page.Records)
	return page, err
}

func (m *metered) Due(ctx context.Context, before time.Time, cursor string) (store.Page, error) {
	page, err := m.Store.Due(ctx, before, cursor)
	m.calls++
	m.records += len(page.Records)
	return page, err
}

func (m *metered) Commit(ctx context.Context, changes ...store.Change) error {
	m.calls++
	return m.Store.Commit(ctx, changes...)
}

func sceneOver(t *testing.T, records store.Store) (*scene, *metered) {
	m, s := &metered{Store: records}, &scene{T: t, now: epoch}
	s.records = &counted{Ledger: ledger.New(m, s.id)}
	return s, m
}

// The cost of a sweep grows with the unsettled records, never with the number of instances.
func TestASweepCostsWhatIsUnsettled(t *testing.T) {
	records := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = records.Close() })
	s, m := sceneOver(t, records)
	sweep := func() (calls, read int) {
		m.calls, m.records = 0, 0
		expect.Get(s.reaper(started).Sweep(t.Context()))(t)
		return m.calls, m.records
	}
	// Three operations that nothing drives, and then as many ready instances as a large platform has.
	for i := range 3 {
		s.overdue(fmt.Sprint("stuck-", i))
	}
	s.now = s.now.Add(time.Hour)
	fewCalls, fewRead := sweep()

	const ready, at = 20_000, 50
	for from := 0; from < ready; from += at {
		var changes []ledger.Change
		for i := from; i < from+at; i++ {
			key := lifecycle.Key{Platform: "p", Instance: fmt.Sprint("ready-", i)}
			start := lifecycle.Start{ID: fmt.Sprintf("operation-%012d", i), Now: epoch, Received: epoch, Timeout: time.Hour}
			instance, err := lifecycle.Record{Key: key}.BeginCreate(start,
				lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{ServiceID: "s", PlanID: "p"}})
			expect.OK(t, err)
			changes = append(changes, ledger.Put(expect.Get(instance.Succeed(epoch, nil))(t)))
		}
		expect.OK(t, s.records.Commit(t.Context(), changes...))
	}
	s.now = s.now.Add(time.Hour)
	manyCalls, manyRead := sweep()
	t.Logf("3 stuck operations: %d calls, %d records read; beside %d ready instances: %d calls, %d records read", fewCalls, fewRead, ready,
		manyCalls, manyRead)
	if manyCalls != fewCalls || manyRead != fewRead {
		t.Errorf("a sweep made %d calls and read %d records, without the ready instances %d and %d", manyCalls, manyRead, fewCalls, fewRead)
	}
	if r, err := s.reaper(started).Sweep(t.Context()); err != nil || r != (reaper.Report{}) {
		t.Errorf("%+v %v", r, err)
	}
}

// newTable is a scene over DynamoDB, whose index has shards.
func newTable(t *testing.T) (*scene, *metered) {
	t.Helper()
	client := dynamodb.NewFromConfig(emulator.Config(t))
	return sceneOver(t, dynamo.New(client, dynamotest.NewTable(t, client)))
}

// Where more is due than a sweep can deal with, sweep after sweep, everything is dealt with in its turn.
func TestSweepsThatAreCutOffComeToEverything(t *testing.T) {
	s, _ := newTable(t)
	const stuck, perSweep = 120, 10
	for n := range stuck {
		s.overdue(fmt.Sprint("stuck-", n))
	}
	driven := map[string]bool{}
	// A minute later, what was driven again is as stuck as before.
	for minute := range 4 * dynamo.Shards {
		s.now = epoch.Add(time.Hour + time.Duration(minute)*time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		left := perSweep
		if _, err := s.reaper(func(_ context.Context, ref workflow.Ref) error {
			driven[ref.Token.Key.Instance] = true
			if left--; left == 0 {
				cancel()
			}
			return nil
		}).Sweep(ctx); err == nil {
			t.Fatal("the sweep has come to its end: the test proves nothing")
		}
		cancel()
	}
	expect.Same(t, "operations that were ever driven again", stuck, len(driven))
}

// Expired records that wait for the table's own expiry cost a sweep nothing.
func TestASweepDoesNotSeeWhatTheTableDrops(t *testing.T) {
	s, m := newTable(t)
	var changes []ledger.Change
	for n := range 30 {
		key := lifecycle.Key{Platform: "p", Instance: fmt.Sprint(n)}
		tombstone := expect.Get(lifecycle.Record{Key: key}.Entomb(epoch, epoch))(t)
		past := lifecycle.PastOperation{Key: key, Operation: lifecycle.Operation{ID: s.id()}, Expires: epoch.Add(lifecycle.Retention)}
		changes = append(changes, ledger.Put(tombstone), ledger.Put(past),
			ledger.Put(ledger.Sighting{Provider: "demo", Name: fmt.Sprint(n), First: epoch}))
	}
	changes = append(changes, ledger.PutReport(ledger.Report{Started: epoch, Ended: epoch}, "report"))
	expect.OK(t, s.records.Ledger.Commit(t.Context(), changes...))
	s.overdue("stuck")
	s.now = epoch.AddDate(1, 0, 0)
	if report, err := s.reaper(started).Sweep(t.Context()); err != nil || report.Overdue != 1 || report.Dropped != 0 {
		t.Errorf("%+v %v", report, err)
	}
	s.now = s.now.Add(time.Minute / 2)
	m.calls, m.records = 0, 0
	if report, err := s.reaper(started).Sweep(t.Context()); err != nil || !report.Empty() {
		t.Errorf("%+v %v", report, err)
	}
	t.Logf("beside 91 expired records: %d calls, %d records read", m.calls, m.records)
	if m.calls != dynamo.Shards || m.records != 0 {
		t.Errorf("a sweep made %d calls and read %d records, want a listing of each of %d shards", m.calls, m.records, dynamo.Shards)
	}
}

// A sweep counts the cases that alarms ring for, with no dimension beside the stack, and nothing
// if it found nothing or did nothing.
func TestSweepsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		report reaper.Report
		want   string
	}{
		"Nothing":   {reaper.Report{}, ""},
		"Busy":      {reaper.Report{Busy: true, Unreached: true}, ""},
		"Halted":    {reaper.Report{Halted: true}, `"Halted":1`},
		"Unreached": {reaper.Report{Unreached: true}, `"Trouble":1`},
		"PastDue":   {reaper.Report{Swept: ledger.Swept{Redriven: 1, Overdue: 2}}, `"PastDue":3`},
	} {
		var out bytes.Buffer
		tc.report.Count(metrics.New("s", &out, time.Now))
		line, _, _ := strings.Cut(out.String(), "\n")
		if tc.want == "" && line != "" || !strings.Contains(line, tc.want) || line != "" &&
			!strings.Contains(line, `"Dimensions":[["Stack"]]`) {
			t.Errorf("%s: %q, want %q", name, line, tc.want)
		}
	}
}

// Each number of a sweep is in its log line and, but for races that were lost, in a metric.
func TestEachNumberOfASweepIsTold(t *testing.T) {
	for field := range reflect.TypeFor[ledger.Swept]().Fields() {
		var log, metric bytes.Buffer
		report := reaper.Report{}
		reflect.ValueOf(&report.Swept).Elem().FieldByIndex(field.Index).SetInt(7)
		report.Log(slog.New(slog.NewTextHandler(&log, nil)), nil)
		report.Count(metrics.New("s", &metric, time.Now))
		if !strings.Contains(log.String(), "=7") {
			t.Errorf("%s: not in the log: %q", field.Name, log.String())
		}
		if field.Name != "Lost" && !strings.Contains(metric.String(), `"Reaped":7`) {
			t.Errorf("%s: not in a metric: %q", field.Name, metric.String())
		}
	}
}
