package faulttest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/faulttest"
)

// served is a config of a service that takes all, and counts what arrives.
func served(t *testing.T, arrived *int) aws.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*arrived++
		fmt.Fprint(w, `{"QueueUrls":[]}`)
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
		Retryer: func() aws.Retryer { return retry.AddWithMaxBackoffDelay(retry.NewStandard(), 1) },
	}
}

// refused reports whether a call has never reached the service.
func refused(err error) bool {
	var connection *net.OpError
	return errors.As(err, &connection) && connection.Op == "dial"
}

func list(client *sqs.Client) error {
	_, err := client.ListQueues(context.Background(), &sqs.ListQueuesInput{})
	return err
}

// Each fault is what it says: of that class, and done or not.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault  faulttest.Fault
		class  awserr.Class
		done   int
		unsent bool
	}{
		{faulttest.Throttled, awserr.Throttled, 0, false},
		{faulttest.Internal, awserr.Passing, 0, false},
		{faulttest.Unsent, awserr.Passing, 0, true},
		{faulttest.Lost, awserr.Passing, 1, false},
		{faulttest.TimedOut, awserr.Passing, 1, false},
		{faulttest.Denied, awserr.Denied, 0, false},
		{faulttest.Quota, awserr.Quota, 0, false},
	} {
		arrived := 0
		p := &faulttest.Plan{At: 2, Fault: tc.fault}
		client := sqs.NewFromConfig(p.Into(served(t, &arrived)))
		expect.OK(t, list(client))
		arrived = 0
		err := list(client)
		if got := awserr.Of(err); got != tc.class || arrived != tc.done || refused(err) != tc.unsent {
			t.Errorf("%s is %v, of class %q, and %d arrived; want class %q and %d", tc.fault, err, got, arrived,
				tc.class, tc.done)
		}
		expect.Same(t, string(tc.fault)+": deadline", tc.fault == faulttest.TimedOut, errors.Is(err, context.DeadlineExceeded))
		expect.OK(t, list(client), "the call after", tc.fault)
		expect.Same(t, "met", []faulttest.Call{{Service: "SQS", Operation: "ListQueues"}}, p.Met())
		expect.Same(t, "calls", 3, len(p.Calls()))
	}
}

// The SDK repeats an attempt that fails, and so does twice what was done once.
func TestAttempts(t *testing.T) {
	arrived := 0
	p := &faulttest.Plan{At: 1, Fault: faulttest.Lost, Attempts: true}
	if err := list(sqs.NewFromConfig(p.Into(served(t, &arrived)))); err != nil || arrived != 2 || len(p.Calls()) != 2 {
		t.Errorf("%v, %d arrived, of %v", err, arrived, p.Calls())
	}
	once := sqs.NewFromConfig(p.Into(served(t, &arrived)), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	p.At, arrived = 3, 0
	if err := list(once); err == nil || arrived != 1 {
		t.Errorf("without retries: %v, %d arrived", err, arrived)
	}
}

func TestOnlyAndTimes(t *testing.T) {
	arrived := 0
	cfg := served(t, &arrived)
	never := &faulttest.Plan{At: 1, Times: -1, Fault: faulttest.Denied,
		Only: func(c faulttest.Call) bool { return c.Service == "IAM" }}
	if err := list(sqs.NewFromConfig(never.Into(cfg))); err != nil || len(never.Calls()) != 0 {
		t.Errorf("%v, counted %v", err, never.Calls())
	}
	always := &faulttest.Plan{At: 2, Times: -1, Fault: faulttest.Denied}
	client := sqs.NewFromConfig(always.Into(cfg))
	for i, fails := range []bool{false, true, true, true} {
		if err := list(client); (err != nil) != fails {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// A story of three calls meets each fault at each of them.
func TestEach(t *testing.T) {
	arrived, met := 0, map[faulttest.Fault]int{}
	cfg := served(t, &arrived)
	faulttest.Each(faulttest.Passing(), func(p *faulttest.Plan) {
		client := sqs.NewFromConfig(p.Into(cfg))
		for range 3 {
			_ = list(client)
		}
		met[p.Fault] += len(p.Met())
	})
	want := map[faulttest.Fault]int{}
	for _, fault := range faulttest.Passing() {
		want[fault] = 3
	}
	expect.Same(t, "faults that were met", want, met)
}
