package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/test/expect"
	inmemory "github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

var update = flag.Bool("update", false, "write what is counted to testdata/usage.json, from which docs/costs.md is computed")

// usage is what AWS bills for: what infra has a price for. Calls of CloudFormation, IAM and STS are free.
type usage struct {
	// Requests are the platform's.
	Requests int
	// Calls are those of the provisioner, Seconds the time within them, Looks the steps of operations.
	Calls, Looks int
	Seconds      float64
	// Transitions are states of Step Functions that were entered.
	Transitions int
	// ReadUnits and WriteUnits are DynamoDB's, those of the index among them.
	ReadUnits, WriteUnits float64
	KeyCalls              int
}

// metered is a store that counts as DynamoDB does.
type metered struct {
	store.Store
	used  *usage
	items map[store.Key]store.Record
}

// size is about what an item has; the names and keys of its attributes come to less than 250 bytes.
func size(r store.Record) float64 { return float64(len(r.Body) + 250) }

func (m metered) Get(ctx context.Context, key store.Key) (store.Record, error) {
	r, err := m.Store.Get(ctx, key)
	m.used.ReadUnits += math.Ceil(size(r) / 4096)
	return r, err
}

func (m metered) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	page, err := m.Store.List(ctx, partition, prefix, after, limit)
	bytes := 1.0
	for _, r := range page.Records {
		bytes += size(r)
	}
	m.used.ReadUnits += math.Ceil(bytes / 4096)
	return page, err
}

func (m metered) Commit(ctx context.Context, changes ...store.Change) error {
	each := 1.0
	if len(changes) > 1 {
		each = 2 // a transaction
	}
	for _, c := range changes {
		was := m.items[c.Record.Key]
		m.used.WriteUnits += each * math.Ceil(max(size(was), size(c.Record))/1024)
		if c.Action != store.ActionPut {
			continue
		}
		if !was.Due.Equal(c.Record.Due) { // one place of the index is emptied, another filled
			for _, due := range []time.Time{was.Due, c.Record.Due} {
				if !due.IsZero() {
					m.used.WriteUnits += each
				}
			}
		}
		m.items[c.Record.Key] = c.Record
	}
	return m.Store.Commit(ctx, changes...)
}

// A keyring is KMS, which counts.
type keyring struct{ used *usage }

func (k keyring) GenerateDataKey(
	context.Context, *awskms.GenerateDataKeyInput, ...func(*awskms.Options),
) (*awskms.GenerateDataKeyOutput, error) {
	k.used.KeyCalls++
	key := []byte("0123456789abcdef0123456789abcdef")
	return &awskms.GenerateDataKeyOutput{Plaintext: append([]byte(nil), key...), CiphertextBlob: key}, nil
}

func (k keyring) Decrypt(_ context.Context, in *awskms.DecryptInput, _ ...func(*awskms.Options)) (*awskms.DecryptOutput, error) {
	k.used.KeyCalls++
	return &awskms.DecryptOutput{Plaintext: append([]byte(nil), in.CiphertextBlob...)}, nil
}

// A life is an instance's, on a broker as it is deployed, with time in the test's hand.
type life struct {
	*testing.T
	clock  *providertest.Clock
	kit    *testkit.Kit
	used   usage
	longer time.Duration // than any operation took
}

// lookTakes is assumed: a look asks AWS two or three times. InvocationTime is the provisioner's on AWS.
const lookTakes, invocationTime = 500 * time.Millisecond, time.Minute

func newLife(t *testing.T) (*life, *fake) {
	l := &life{T: t, clock: providertest.NewClock(testkit.Epoch)}
	stood := newFake(l.clock.Now)
	stood.settles = keySettles
	made := stood.over("", here, func(_ context.Context, _ string, do func() error) error { return do() })
	l.kit = testkit.New(testkit.Options{
		Store: metered{inmemory.New(), &l.used, map[store.Key]store.Record{}}, Vault: kms.New(keyring{&l.used}, "key"),
		Now: l.clock.Now, CallTimeout: wired.DefaultCallTimeout, HardTimeout: invocationTime,
		Providers: map[string]provider.Provider{"demo": planned{Provider: made}},
	})
	return l, stood
}

// keySettles is how long AWS refuses a new key, as is assumed.
const keySettles = 4 * time.Second

// An invocation ends at a time of the test's clock.
type invocation struct {
	context.Context
	end time.Time
}

func (i invocation) Deadline() (time.Time, bool) { return i.end, true }

// asks is one request, which is settled then; the platform's poll is one, too.
func (l *life) asks(q func(ctx context.Context, b *broker.Broker, c broker.Caller) (broker.Result, error)) {
	l.Helper()
	l.used.Requests++
	l.settles(expect.Get(q(kms.Together(l.Context()), l.kit.Broker(), broker.Caller{Platform: "p", AcceptsIncomplete: true,
		Received: l.clock.Now()}))(l))
}

func (l *life) polls(key lifecycle.Key) {
	l.Helper()
	l.used.Requests++
	expect.Get(l.kit.Ledger().Record(l.Context(), key, l.clock.Now()))(l)
}

// settles drives an operation as Step Functions and the provisioner do, while the platform asks once a minute.
func (l *life) settles(r broker.Result) {
	l.Helper()
	began, asked := l.clock.Now(), l.clock.Now()
	polls := func() {
		for ; !l.clock.Now().Before(asked); asked = asked.Add(time.Minute) {
			l.polls(r.Token.Key)
		}
	}
	pass := func(_ context.Context, d time.Duration) error {
		l.used.Looks++
		l.clock.Advance(d + lookTakes)
		polls()
		return nil
	}
	for calls := 0; ; calls++ {
		if calls > 200 {
			l.Fatal("it never settles")
		}
		start := l.clock.Now()
		l.used.Calls++
		outcome := expect.Get(l.kit.Worker().Drive(invocation{kms.Together(l.Context()), start.Add(invocationTime)},
			workflow.Ref{Token: r.Token, Attempt: 1}, pass))(l)
		_ = pass(nil, 0) // the last look
		l.used.Seconds += l.clock.Now().Sub(start).Seconds()
		if outcome.Settled {
			l.used.Transitions += stepfunctions.TransitionsOfLast
			break
		}
		l.used.Transitions += stepfunctions.TransitionsOfRound
		l.clock.Advance(outcome.Wait)
	}
	l.longer = max(l.longer, l.clock.Now().Sub(began))
	l.polls(r.Token.Key) // it is told
	record := expect.Get(l.kit.Ledger().Record(l.Context(), r.Token.Key, l.clock.Now()))(l)
	if record.Operation != nil && record.Operation.Phase != lifecycle.Succeeded {
		l.Fatalf("%+v", record.Operation)
	}
}

// wholeLife is provision, bind, unbind and deprovision, of which the first and the last settle within a time.
func wholeLife(t *testing.T, within time.Duration) usage {
	t.Helper()
	l, cloud := newLife(t)
	const instanceID = "8a9c3d5e-0c1f-4d39-9c5e-5c8f0a1b2c3d"
	service, plan := testkit.PlanIDs("async-bind")
	cloud.takes = within * 4 / 5 / 3 // a creation has three parts
	l.asks(func(ctx context.Context, b *broker.Broker, c broker.Caller) (broker.Result, error) {
		return b.Provision(ctx, broker.ProvisionRequest{Caller: c, InstanceID: instanceID, ServiceID: service, PlanID: plan,
			OrganizationGUID: "6c1f0a1b-2c3d-4e5f-8607-18a9c3d5e0c1", SpaceGUID: "1b2c3d4e-5f60-4718-89aa-bbccddeeff00",
			Parameters: json.RawMessage(`{"note":"one"}`),
			Context:    json.RawMessage(`{"platform":"cloudfoundry","instance_name":"my-instance"}`)})
	})
	l.asks(func(ctx context.Context, b *broker.Broker, c broker.Caller) (broker.Result, error) {
		r, err := b.Bind(ctx, broker.BindRequest{Caller: c, InstanceID: instanceID, BindingID: "binding", ServiceID: service,
			PlanID: plan})
		return r, err
	})
	remove := broker.DeleteRequest{InstanceID: instanceID, BindingID: "binding", ServiceID: service, PlanID: plan}
	l.asks(func(ctx context.Context, b *broker.Broker, c broker.Caller) (broker.Result, error) {
		remove.Caller = c
		return b.Delete(ctx, remove)
	})
	cloud.takes = within * 4 / 5 // a deletion has one
	l.asks(func(ctx context.Context, b *broker.Broker, c broker.Caller) (broker.Result, error) {
		remove.Caller, remove.BindingID = c, ""
		return b.Delete(ctx, remove)
	})
	if l.longer > within || l.longer < within*3/4 {
		t.Errorf("its longest operation took %v, which is not just within %v", l.longer, within)
	}
	l.used.Seconds = math.Round(l.used.Seconds)
	return l.used
}

// TestUsage counts the calls of one instance's life: docs/costs.md computes its price from them.
func TestUsage(t *testing.T) {
	const file = "testdata/usage.json"
	raw := expect.Get(json.MarshalIndent(map[string]usage{
		"minute": wholeLife(t, time.Minute), "ten_minutes": wholeLife(t, 10*time.Minute),
	}, "", "  "))(t)
	raw = append(raw, '\n')
	if *update {
		expect.OK(t, errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, raw, 0o644)))
	}
	want := expect.Get(os.ReadFile(file))(t)
	expect.Same(t, file+" is of another time: run this test with -update, and then ./infra with -update", string(want),
		string(raw))
}
