package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// Recreate begins a failed creation once more, as a new operation with the original request. From
// then on, a repetition of the platform's request is answered with the new operation. The token of
// the failed operation still says that it failed.
func (c *Console) Recreate(ctx context.Context, token string) (Row, error) {
	return acts.Decide(ctx, func() (Row, error) { return c.recreate(ctx, token) })
}

func (c *Console) recreate(ctx context.Context, token string) (Row, error) {
	t, i, err := c.Find(ctx, token)
	if err != nil {
		return Row{}, err
	}
	failed := i.FailedCreation()
	if failed == nil && i.State == lifecycle.CreateFailed {
		failed = i.Operation // the failure was told in the answer itself
	}
	switch {
	case failed == nil:
		return Row{}, refuse("the %s is %q: only what failed to be created, and was not deleted by its platform, "+
			"can be created again", i.Noun(), i.State)
	case failed.ID != t.Operation:
		return Row{}, refuse("another creation has replaced this one, so nothing was done: " +
			"`longshore operations` lists the latest")
	case i.State == lifecycle.Deleting:
		return Row{}, refuse("its remains are being removed: wait until that is done")
	case i.State == lifecycle.DeleteFailed:
		return Row{}, refuse("its remains could not be removed: `longshore retry` tries again")
	case t.Key.IsBinding():
		return c.rebind(ctx, i)
	}
	return c.reprovision(ctx, i)
}

// errLost refuses a creation whose order is lost: something else than ordered would be made.
var errLost = refuse("its parameters or its secret are lost: have its platform delete it and create it again")

func (c *Console) reprovision(ctx context.Context, i lifecycle.Record) (Row, error) {
	if i.LostParameters() {
		return Row{}, errLost
	}
	if i.Undeletes != nil {
		return Row{}, refuse("it was to restore the retained data of %q: have its platform delete it; `longshore retained` "+
			"then lists what to order", i.Undeletes.Instance)
	}
	switch restores, err := c.restores(ctx, i); {
	case err != nil:
		return Row{}, err
	case restores:
		return Row{}, refuse("it was to be restored from another instance, which may have changed since: have its platform " +
			"delete it and create another one")
	}
	return c.again(ctx, i)
}

// again begins the creation once more, as long as the records that it depends on stay as they are.
func (c *Console) again(ctx context.Context, r lifecycle.Record, depends ...ledger.Change) (Row, error) {
	timeout, err := c.timeout(r.Attributes)
	if err != nil {
		return Row{}, err
	}
	next, err := r.BeginCreate(c.Begin(timeout), r)
	if err != nil {
		return Row{}, err
	}
	return c.drive(ctx, "recreate", next,
		append(depends, ledger.FirstTargetUse(r, next, c.Now()))...)
}

// restores reports whether the instance was ordered as a restore of another one. Created without
// that parameter, it would be empty and look complete.
func (c *Console) restores(ctx context.Context, i lifecycle.Record) (bool, error) {
	_, plan, _ := c.plan(i.Attributes)
	if plan.RestoreParameter == "" || i.Attributes.Parameters == nil {
		return false, nil
	}
	plain, err := c.Vault.Open(ctx, vault.Label{Key: i.Key, Member: vault.Parameters}, i.Attributes.Parameters)
	if err != nil {
		return false, fmt.Errorf("opening what it was ordered with: %w", err)
	}
	var given map[string]any
	if json.Unmarshal(plain, &given) != nil {
		return false, nil // such parameters name no instance to restore
	}
	return given[plan.RestoreParameter] != nil, nil
}

// rebind binds again, provided that the instance still allows it. It refuses a binding that the
// broker has removed, since the secret from which its credentials derive is gone.
func (c *Console) rebind(ctx context.Context, b lifecycle.Record) (Row, error) {
	if b.State != lifecycle.CreateFailed {
		return Row{}, refuse("its remains have been removed: have the platform delete the binding, and bind again")
	}
	if b.Secret == nil || b.LostParameters() {
		return Row{}, errLost
	}
	i, err := c.read(ctx, b.Key.InstanceKey())
	if err != nil {
		return Row{}, err
	}
	var refusal *lifecycle.Refusal
	if _, err := i.Answer(lifecycle.BindOn, lifecycle.Conditions{Received: c.Now(), Now: c.Now()}); errors.As(err, &refusal) {
		return Row{}, refuse("its instance does not allow it: %s", refusal.Message)
	}
	if i.Incarnation != b.InstanceIncarnation {
		return Row{}, refuse("its instance was replaced by another one: delete the binding")
	}
	return c.again(ctx, b, ledger.Check(i))
}

// timeout returns how long a creation on a plan may take. It refuses a plan that has left the catalog.
func (c *Console) timeout(a lifecycle.Attributes) (time.Duration, error) {
	_, plan, ok := c.plan(a)
	switch {
	case !ok:
		return 0, refuse("its plan is no longer in the catalog, so nothing was done: " +
			"put the plan back, or have its platform delete it")
	case plan.MaximumPollingDuration > 0:
		return time.Duration(plan.MaximumPollingDuration) * time.Second, nil
	}
	return c.OperationTimeout, nil
}
