// Package faulttest has calls of AWS fail in tests as they do in life: refused before
// they were done, or done with their answer lost. A Plan is given to clients in their
// config, so that what is tested is the program's own code, by the real SDK, against
// whatever answers. It knows no service.
package faulttest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Fault is what a call meets.
type Fault string

// The faults. After Throttled, Unsent and Internal nothing was done; after Lost and
// TimedOut everything was, and only the answer is missing.
const (
	Throttled Fault = "throttled"  // AWS refuses it: too many calls
	Internal  Fault = "internal"   // AWS fails by itself, before it has done anything
	Unsent    Fault = "unsent"     // there is no connection
	Lost      Fault = "lost"       // the connection breaks when the call is done
	TimedOut  Fault = "timed out"  // the call's own time ends when it is done
	Denied    Fault = "denied"     // the caller's policies do not allow it
	Quota     Fault = "over quota" // a limit of the account is reached
)

// Passing are the faults after which everything must converge.
func Passing() []Fault { return []Fault{Throttled, Internal, Unsent, Lost, TimedOut} }

// A Call is one that a client made: such as {"IAM", "CreateUser"}.
type Call struct{ Service, Operation string }

// String is such as IAM.CreateUser.
func (c Call) String() string { return c.Service + "." + c.Operation }

// A Plan says which calls fail. The zero Plan only counts. One Plan may serve many
// clients at once; its fields are set before.
type Plan struct {
	// At is the number of the first call that fails, from 1; 0 for none. Times is how
	// many do from there on, one unless given; negative for all.
	At, Times int
	Fault     Fault
	// Only limits what is counted, and so what fails; nil for every call.
	Only func(Call) bool
	// Attempts counts each attempt of the SDK as a call of its own, so that the SDK
	// repeats what has failed where it may. Otherwise a fault is what is left after
	// all attempts: whoever called sees it.
	Attempts bool

	mu    sync.Mutex
	calls []Call
	met   []Call
}

// Into gives the config with the plan in it: of clients made of it, each call counts.
func (p *Plan) Into(cfg aws.Config) aws.Config {
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), p.Option)
	return cfg
}

// Option is one of aws.Config's APIOptions, and of a client's.
func (p *Plan) Option(stack *middleware.Stack) error {
	if p.Attempts {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("FaultTest", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			err = p.call(ctx, func(ctx context.Context) (err error) {
				out, md, err = next.HandleFinalize(ctx, in)
				return err
			})
			return out, md, err
		}), "Retry", middleware.After)
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("FaultTest", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
		err = p.call(ctx, func(ctx context.Context) (err error) {
			out, md, err = next.HandleInitialize(ctx, in)
			return err
		})
		return out, md, err
	}), middleware.After)
}

// call counts a call, and makes it unless its fault comes before.
func (p *Plan) call(ctx context.Context, do func(context.Context) error) error {
	fault := p.next(Call{Service: awsmiddleware.GetServiceID(ctx), Operation: awsmiddleware.GetOperationName(ctx)})
	switch fault {
	case "":
		return do(ctx)
	case Lost, TimedOut:
		// The call's own error is lost, too.
		_ = do(ctx)
	}
	return fault.err()
}

func (p *Plan) next(c Call) Fault {
	if p.Only != nil && !p.Only(c) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	n, times := len(p.calls), max(p.Times, 1)
	if p.At == 0 || n < p.At || p.Times >= 0 && n >= p.At+times {
		return ""
	}
	p.met = append(p.met, c)
	return p.Fault
}

// err is what the SDK gives for a fault.
func (f Fault) err() error {
	said := func(code, message string, by smithy.ErrorFault) error {
		return &smithy.GenericAPIError{Code: code, Message: message, Fault: by}
	}
	switch f {
	case Throttled:
		return said("Throttling", "Rate exceeded", smithy.FaultClient)
	case Internal:
		return said("InternalFailure", "an injected fault of the service", smithy.FaultServer)
	case Denied:
		return said("AccessDenied", "User: arn:aws:iam::000000000000:role/x is not authorized to perform this",
			smithy.FaultClient)
	case Quota:
		return said("LimitExceeded", "Cannot exceed quota for an injected limit", smithy.FaultClient)
	case Unsent:
		return &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	case Lost:
		return &smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}}
	case TimedOut:
		return &aws.RequestCanceledError{Err: context.DeadlineExceeded}
	}
	return fmt.Errorf("there is no fault %q", string(f))
}

// Calls are those that were made, in their order, and Met those that failed.
func (p *Plan) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Met are the calls that met the fault.
func (p *Plan) Met() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.met)
}

// Each runs a story again and again: with the first fault at its first call, at its
// second, and so on until the story ends before the fault comes, then with the next
// fault. The story begins from nothing each time, and makes its clients by the plan.
func Each(faults []Fault, story func(p *Plan)) {
	for _, fault := range faults {
		for at := 1; ; at++ {
			p := &Plan{At: at, Fault: fault}
			story(p)
			if len(p.Met()) == 0 {
				break
			}
		}
	}
}
