// Package remote calls a provider that runs in another function, inside the VPC of the servers that
// it talks to. It owns both ends and the messages between them: the client, which is a provider to
// the worker and an inventory to the reaper, and the handler of the function inside.
//
// The function inside has no rights and no state: a call gives it all that it needs, including
// secrets, and it returns the result. Records, leases and sealing stay outside. Neither side logs
// the content of a call.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// Invoker is the part of *lambda.Client that a client calls. Invoke blocks until the function has
// answered. A client never repeats a call by itself.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Options configure a client.
type Options struct {
	// Provider is the provider's name in the function inside.
	Provider string
	// Function is the ARN of the function inside.
	Function string
	Reach    Reach
	// Outside is the provider as it would be without a VPC: its times, the names of its targets,
	// and its abilities. The client calls only its Targets.
	Outside wired.Provider
}

// A Reach tells the provider inside how to reach its targets. The zero Reach is for a provider that
// needs no such knowledge.
type Reach struct {
	// LookUp returns how to reach targets today: the addresses and passwords with which the
	// provider inside is opened. Its argument is the targets that the call names; none for a page
	// of the inventory, which covers all targets.
	LookUp func(ctx context.Context, targets []provider.Target) (json.RawMessage, error)
	// Forget is called when a call with that knowledge met a fault, since the knowledge may be out
	// of date.
	Forget func()
}

// New returns the provider and its inventory. It makes no call. Each call of the provider is one
// Invoke, which the caller's context has to limit.
func New(invoker Invoker, o Options) wired.Provider {
	c := &client{invoker: invoker, Options: o}
	w := o.Outside
	w.Provider, w.Identifier, w.Close = c, nil, nil // the function inside proves the target of each call itself
	if w.Inventory != nil {
		w.Inventory = c
	}
	if w.Refuser != nil {
		w.Refuser = c
	}
	if w.Quarantiner != nil {
		w.Quarantiner = c
	}
	if w.Adopter != nil {
		w.Adopter = c
	}
	if w.Describer != nil {
		w.Describer = c
	}
	if w.Reconciler != nil {
		w.Reconciler = c
	}
	return w
}

type client struct {
	invoker Invoker
	Options
}

// Provision implements provider.Provider.
func (c *client) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.step(ctx, request{Verb: verbProvision, Instance: &in})
}

// Update implements provider.Provider.
func (c *client) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.step(ctx, request{Verb: verbUpdate, Instance: &in})
}

// Deprovision implements provider.Provider.
func (c *client) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.step(ctx, request{Verb: verbDeprovision, Instance: &in})
}

// Refuses implements provider.Refuser.
func (c *client) Refuses(ctx context.Context, in provider.Instance) error {
	_, err := c.step(ctx, request{Verb: verbRefuses, Instance: &in})
	return err
}

// Bind implements provider.Provider.
func (c *client) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return c.step(ctx, request{Verb: verbBind, Binding: &b})
}

// Unbind implements provider.Provider.
func (c *client) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return c.step(ctx, request{Verb: verbUnbind, Binding: &b})
}

// List implements provider.Inventory.
func (c *client) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	return c.page(ctx, request{Verb: verbList, Cursor: cursor})
}

func (c *client) page(ctx context.Context, r request) ([]provider.Holding, string, error) {
	a, err := c.call(ctx, r)
	p, err := member(a.Page, err) // perhaps with an error: one of several targets did not answer
	return p.Holdings, p.Next, err
}

// Quarantine implements provider.Quarantiner.
func (c *client) Quarantine(ctx context.Context, h provider.Holding) error {
	_, err := c.step(ctx, request{Verb: verbQuarantine, Holding: &h})
	return err
}

// Release implements provider.Quarantiner.
func (c *client) Release(ctx context.Context, h provider.Holding) error {
	_, err := c.step(ctx, request{Verb: verbRelease, Holding: &h})
	return err
}

// Adopt implements provider.Adopter.
func (c *client) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	_, err := c.step(ctx, request{Verb: verbAdopt, Holding: &h, Former: &former})
	return err
}

// Describe implements provider.Describer.
func (c *client) Describe(ctx context.Context, in provider.Instance) (provider.Facts, error) {
	a, err := c.call(ctx, request{Verb: verbDescribe, Instance: &in})
	return member(a.Facts, err)
}

// Survey implements wired.Reconciler.
func (c *client) Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error) {
	a, err := c.call(ctx, request{Verb: verbSurvey, Epochs: &epochs{Target: provider.Target{Name: name}}})
	st, err := member(a.Status, err)
	t, err := member(st.Target, err)
	return t, a.Epoch, err
}

// Holdings implements wired.Reconciler.
func (c *client) Holdings(ctx context.Context, target, cursor string) ([]provider.Holding, string, error) {
	t := provider.Target{Name: target}
	return c.page(ctx, request{Verb: verbHoldings, Cursor: cursor, Epochs: &epochs{Target: t}})
}

// Advance implements wired.Reconciler.
func (c *client) Advance(ctx context.Context, t provider.Target, from, to target.Epoch) (target.Epoch, error) {
	a, err := c.call(ctx, request{Verb: verbAdvance, Epochs: &epochs{Target: t, From: from, To: to}})
	_, err = member(a.Status, err)
	return a.Epoch, err
}

func (c *client) step(ctx context.Context, r request) (provider.Status, error) {
	a, err := c.call(ctx, r)
	return member(a.Status, err)
}

// member returns the member of an answer that its call asks for. An answer without it is of another version.
func member[T any](asked *T, err error) (is T, _ error) {
	if asked != nil {
		return *asked, err
	}
	return is, cmp.Or(err, errVersion)
}

// call calls the function inside with one Invoke. A failure of the provider inside is its error.
func (c *client) call(ctx context.Context, r request) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	r.Version, r.Provider = version, c.Provider
	if c.Reach.LookUp != nil {
		var err error
		if r.Reach, err = c.Reach.LookUp(ctx, r.targets()); err != nil {
			return answer{}, fmt.Errorf("looking up how provider %q reaches its target: %w", c.Provider, err)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		r.Until = deadline.Add(-answerTime).UTC()
	}
	payload, _ := encode(r) // texts, times and what was read from JSON can always be encoded
	out, err := c.invoker.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &c.Function, InvocationType: lambdatypes.InvocationTypeRequestResponse, Payload: payload,
	}, once)
	if err != nil {
		failed := fmt.Errorf("calling provider %q inside the VPC: %w", c.Provider, err)
		if refused(err) {
			return answer{}, failed
		}
		return answer{}, &unanswered{failed}
	}
	if out.FunctionError != nil {
		// The function may have died in the middle of a call of its own. Its error message may
		// repeat its input, so it is dropped.
		return answer{}, &unanswered{
			fmt.Errorf("the function of provider %q inside the VPC has failed: its log says why", c.Provider),
		}
	}
	var a answer
	if decode(out.Payload, &a) != nil || a.Version != version {
		return answer{}, errVersion
	}
	if f := a.Fault; f != nil {
		if c.Reach.Forget != nil {
			c.Reach.Forget()
		}
		err := fmt.Errorf("provider %q inside the VPC: %s", c.Provider, f.What)
		if f.Trouble != nil {
			err = f.Trouble
		}
		if f.Unanswered {
			err = &unanswered{err}
		}
		return answer{Page: a.Page}, err
	}
	if a.Failure != nil {
		return answer{}, a.Failure
	}
	return a, nil
}

// answerTime is how much earlier the call inside ends than this one, so that its end is known here:
// if both were running, a cloud would have two callers.
const answerTime = time.Second

// once keeps the SDK from repeating a call, since the first one may still be running inside.
func once(o *lambda.Options) { o.Retryer = aws.NopRetryer{} }

// refused reports whether Lambda has not even begun the call: the caller may not make it, it is too
// large, or there are too many calls.
func refused(err error) bool {
	var r *smithyhttp.ResponseError
	return errors.As(err, &r) && r.HTTPStatusCode() >= http.StatusBadRequest &&
		r.HTTPStatusCode() < http.StatusInternalServerError
}

// unanswered is the error of a call that may still run or take effect inside. It counts as a call
// of the caller's own that ran out of time.
type unanswered struct{ err error }

func (e *unanswered) Error() string { return e.err.Error() }

// Unwrap lets errors.Is and errors.As find both the cause and context.DeadlineExceeded.
func (e *unanswered) Unwrap() []error { return []error{e.err, context.DeadlineExceeded} }
