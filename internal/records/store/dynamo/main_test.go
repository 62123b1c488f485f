package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// A wire carries the calls of one client to the emulator. It counts them, as
// the network sees them, and can do with each what networks and services do.
type wire struct {
	under aws.HTTPClient
	mu    sync.Mutex
	calls map[string]int
	// meet decides what becomes of the nth call of a kind, counted from 1. Nil, or the answer nil, lets it pass.
	meet func(call string, n int, r *http.Request) event
}

// An event is what becomes of a call.
type event func(pass func() (*http.Response, error)) (*http.Response, error)

var errNetwork = fmt.Errorf("the network failed: %w", io.ErrUnexpectedEOF)

// lost: it is done, but its answer never comes.
func lost(pass func() (*http.Response, error)) (*http.Response, error) {
	answer, err := pass()
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	return nil, errNetwork
}

// dropped: it never arrives.
func dropped(func() (*http.Response, error)) (*http.Response, error) { return nil, errNetwork }

// refused: it is answered with an error and not done. More is what the error has beside its code.
func refused(status int, code, more string) event {
	return func(func() (*http.Response, error)) (*http.Response, error) {
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"made by the test"%s}`, code, more)
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// cancelled is a transaction that was cancelled for these reasons.
func cancelled(reasons ...string) event {
	var list []string
	for _, r := range reasons {
		list = append(list, fmt.Sprintf(`{"Code":%q}`, r))
	}
	return refused(http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(list, ",")+`]`)
}

// then does something before it goes on as the event does.
func (e event) then(do func()) event {
	return func(pass func() (*http.Response, error)) (*http.Response, error) {
		answer, err := e(pass)
		do()
		return answer, err
	}
}

// Do is how the SDK sends.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.calls[call]++
	n, meet := w.calls[call], w.meet
	w.mu.Unlock()
	pass := func() (*http.Response, error) { return w.under.Do(r) }
	if meet != nil {
		if e := meet(call, n, r); e != nil {
			return e(pass)
		}
	}
	return pass()
}

// count gives the calls since it was last asked, and starts anew.
func (w *wire) count() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := maps.Clone(w.calls)
	clear(w.calls)
	return calls
}

// script lets the calls of a kind meet these events, one after another.
func (w *wire) script(call string, events ...event) {
	var of []func(*http.Request) event
	for _, e := range events {
		of = append(of, func(*http.Request) event { return e })
	}
	w.scriptOf(call, of...)
}

// scriptOf is script with events that look at the request.
func (w *wire) scriptOf(call string, events ...func(*http.Request) event) {
	w.count()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meet = func(c string, n int, r *http.Request) event {
		if c != call || n > len(events) {
			return nil
		}
		return events[n-1](r)
	}
}

// A stand is a store over a table of its own.
type stand struct {
	*dynamo.Store
	*wire
	other store.Store      // over the same table, by another wire
	plain *dynamodb.Client // for what the test does itself
	sdk   *dynamodb.Client
	table string
	// overrunning is the record that overrun changes.
	overrunning store.Record
	sleeping    sync.Mutex
	slept       []time.Duration
}

func newStand(t *testing.T) *stand {
	t.Helper()
	config := emulator.Config(t)
	plain := dynamodb.NewFromConfig(config)
	table := dynamotest.NewTable(t, plain)
	s := &stand{wire: &wire{under: config.HTTPClient, calls: map[string]int{}}, plain: plain,
		other: dynamo.New(plain, table, dynamo.Options{}), table: table}
	config.HTTPClient = s.wire
	s.sdk = dynamodb.NewFromConfig(config)
	s.Store = dynamo.New(s.sdk, table, dynamo.Options{
		Sleep: func(ctx context.Context, d time.Duration) error {
			s.sleeping.Lock()
			defer s.sleeping.Unlock()
			s.slept = append(s.slept, d)
			return ctx.Err()
		},
		Jitter: func() float64 { return 0.5 },
	})
	return s
}

// due stands in no relation to the clock.
var due = time.Date(2031, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)

func fixture(partition, sort string) store.Record {
	return store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "writer of " + sort, Schema: 7, Due: due,
		Expires: due.Truncate(time.Second).Add(time.Hour), Body: bytes.Repeat([]byte(sort), 10)}
}

// text and number are values of attributes.
func text(v string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: v} }
func number(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

// duePages are the pages of what is due.
func duePages(ctx context.Context, s store.Store) (pages []store.Page, _ error) {
	for cursor := ""; ; {
		p, err := s.Due(ctx, due, cursor)
		pages = append(pages, p)
		if cursor = p.Next; err != nil || cursor == "" {
			return pages, err
		}
	}
}

// put commits the record past the stand's wire, and gives it as stored.
func (s *stand) put(t *testing.T, r store.Record) store.Record {
	t.Helper()
	expect.OK(t, s.other.Commit(context.Background(), store.Put(r)))
	r.Version++
	return r
}
