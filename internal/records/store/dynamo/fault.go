package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	tryTimeout = 5 * time.Second // DynamoDB usually answers within milliseconds
	// maxTries tries, with the pauses between them, take 5 s on average and 10 s at most.
	maxTries   = 12
	firstPause = 20 * time.Millisecond
	longPause  = 2 * time.Second
)

// errUnprocessed says that DynamoDB is too busy, which BatchGetItem reports without an error.
var errUnprocessed = errors.New("records were left unread: the table is throttled")

// pauses say how tries are timed.
type pauses struct {
	sleep      func(ctx context.Context, d time.Duration) error
	jitter     func() float64 // from 0 to less than 1
	tryTimeout time.Duration  // ends a try that gets no answer
}

// once switches the SDK's own repetitions off.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// A kind says what an error means for the call. The kinds rise by weight: of the reasons for which a
// transaction was refused, lasting ones outweigh passing ones.
type kind int

const (
	unanswered kind = iota // unknown whether it was done; passes
	throttled              // refused because of too many calls; passes
	collision              // refused because of a transaction under way; passes
	permanent              // refused: nothing was done, and repeating is of no use
	invalid                // refused because of the call itself
	changed                // refused: a condition did not hold
)

// A fault is an error of the SDK as this package sees it.
type fault struct {
	kind kind
	// at is the index of the first change that a conflict is about.
	at int
	// found holds the items that conditions met, by the index of the change.
	found map[int]item
}

func (f fault) passes() bool    { return f.kind <= collision }
func (f fault) conflicts() bool { return f.kind == changed || f.kind == collision }

// faultOf classifies every error of DynamoDB, by type and by code.
func faultOf(err error) fault {
	var (
		condition *types.ConditionalCheckFailedException
		canceled  *types.TransactionCanceledException
		answer    smithy.APIError
		status    *smithyhttp.ResponseError
	)
	switch {
	case errors.As(err, &condition):
		return fault{kind: changed, found: map[int]item{0: condition.Item}}
	case errors.As(err, &canceled):
		return cancellation(canceled.CancellationReasons)
	case errors.As(err, new(*types.TransactionConflictException)):
		return fault{kind: collision}
	case errors.As(err, new(*types.TransactionInProgressException)), // an earlier try of this same transaction is under way
		!errors.As(err, &answer):
		return fault{kind: unanswered}
	}
	code := answer.ErrorCode()
	_, throttles := retry.DefaultThrottleErrorCodes[code]
	_, timeout := retry.DefaultRetryableErrorCodes[code]
	switch {
	case throttles:
		return fault{kind: throttled}
	case timeout, answer.ErrorFault() == smithy.FaultServer,
		errors.As(err, &status) && status.HTTPStatusCode() >= http.StatusInternalServerError:
		return fault{kind: unanswered}
	case code == "ValidationException":
		return fault{kind: invalid}
	default:
		return fault{kind: permanent}
	}
}

// cancellation returns the weightiest reason; there is one for each change.
func cancellation(reasons []types.CancellationReason) fault {
	f := fault{kind: permanent, found: map[int]item{}}
	told := false
	for n, r := range reasons {
		k := permanent
		switch aws.ToString(r.Code) {
		case "", "None":
			continue
		case "ConditionalCheckFailed":
			k, f.found[n] = changed, r.Item
		case "TransactionConflict":
			k = collision
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			k = throttled
		case "ValidationError":
			k = invalid
		}
		if !told || k > f.kind {
			f.kind, f.at, told = k, n, true
		}
	}
	return f
}

// repeat tries until the answer is final, too many tries have passed, or ctx is done. It
// reports whether any try went without an answer.
func (s *Store) repeat(ctx context.Context, try func(context.Context) error) (open bool, err error) {
	for n := 1; ; n++ {
		if over := ctx.Err(); over != nil {
			return open, over
		}
		err = s.bounded(ctx, try)
		if err == nil {
			return open, nil
		}
		f := faultOf(err)
		open = open || f.kind == unanswered
		if over := ctx.Err(); over != nil && f.kind == unanswered {
			return open, fmt.Errorf("%w: %w", over, err)
		}
		if !f.passes() || n == maxTries || s.sleep(ctx, s.pause(n)) != nil {
			return open, err
		}
	}
}

func (s *Store) bounded(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.tryTimeout)
	defer cancel()
	return try(ctx)
}

// pause returns how long to wait after the nth try: a random part of a time that doubles.
func (s *Store) pause(n int) time.Duration {
	return time.Duration(s.jitter() * float64(min(firstPause<<(n-1), longPause)))
}
