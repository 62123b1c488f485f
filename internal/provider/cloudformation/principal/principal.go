// Package principal keeps what the bindings of AWS services have of their own: an
// IAM user with one access key, or a role that others may assume. It owns their
// names, policies, keys, tags and end; it knows nothing of stacks.
package principal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A Keeper makes, changes and removes the principals of one broker in one account.
// One Keeper serves all operations of a process: it remembers how full the account
// is, and how fast it may read.
type Keeper struct {
	IAM    IAM
	Prover Prover
	Scope  plan.Scope
	// Broker is whose principals the inventory lists.
	Broker string
	// Boundary gives the ARN of the policy that bounds an offering's principals.
	Boundary func(offering string) string
	Now      func() time.Time
	Log      *slog.Logger
	// Reads is how fast List reads tags; nil for ReadsPerSecond.
	Reads *rate.Limiter
}

// Bind makes the binding's principal by a step, as provider.Provider has it. Values
// are the outputs of the instance and the plan.Value names. It needs neither more nor
// less than the operation's own state.
func (k *Keeper) Bind(ctx context.Context, b provider.Binding, m plan.Meaning, values map[string]string) (provider.Status, error) {
	return provider.Status{}, errors.ErrUnsupported
}

// Unbind removes the principals of a binding, whatever their incarnation.
func (k *Keeper) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return provider.Status{}, errors.ErrUnsupported
}

// Rewrite gives the policies of all principals of an instance what m and the values
// say. Not done means that it is to be called again.
func (k *Keeper) Rewrite(ctx context.Context, in provider.Instance, m plan.Meaning, values map[string]string) (done bool, err error) {
	return false, errors.ErrUnsupported
}

// List lists the broker's principals, page by page, without their target.
func (k *Keeper) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	return nil, "", errors.ErrUnsupported
}

// Quarantine has a principal open nothing; Release puts it into use again.
func (k *Keeper) Quarantine(ctx context.Context, h provider.Holding) error {
	return errors.ErrUnsupported
}

// Release ends a quarantine.
func (k *Keeper) Release(ctx context.Context, h provider.Holding) error {
	return errors.ErrUnsupported
}
