package principal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// kinds are the kinds of principals.
var kinds = []plan.Principal{plan.User, plan.Role}

// listed returns all principals below a path, of both kinds.
func (k *Keeper) listed(ctx context.Context, path string) (all []Found, err error) {
	for _, kind := range kinds {
		for f, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]Found, string, error) {
			return k.IAM.List(ctx, kind, path, cursor, listMost)
		}) {
			if err != nil {
				return nil, fmt.Errorf("listing %ss: %w", kind, err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// named returns the principals of a name: a user, a role, or both.
func (k *Keeper) named(ctx context.Context, name string) (all []Found, err error) {
	for _, kind := range kinds {
		f, err := k.IAM.Get(ctx, kind, name)
		switch {
		case err == nil:
			all = append(all, f)
		case !awserr.Is(err, awserr.Absent):
			return nil, fmt.Errorf("reading a %s: %w", kind, err)
		}
	}
	return all, nil
}

// listMost is how many principals IAM lists in a page at most.
const listMost = 1000

// owned reads a principal. It fails if the principal is not the binding's, and leaves it as it is.
func (t *task) owned(ctx context.Context, f Found) (Found, error) {
	full, err := t.IAM.Get(ctx, f.Kind, f.Name)
	if err != nil {
		return full, fmt.Errorf("reading a %s: %w", f.Kind, err)
	}
	if full.of() != t.tags {
		t.Log.Error("something of others has the name of a binding's principal: it was left alone", "name", f.Name)
		return full, provider.Failf("Something else has the name of this binding's principal, and was left alone. Tell the " +
			"operator of the broker.")
	}
	return full, nil
}

// Unbind removes the principals of a binding in steps, like provider.Provider: a user, a role, or
// both if the plan was changed in between.
func (k *Keeper) Unbind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	t := &task{Keeper: k, b: b, tags: provider.BindingTagsOf(b)}
	all, err := k.listed(ctx, k.Scope.BindingPath(t.tags))
	if err == nil && len(all) == 0 { // the lists may not show a new principal yet
		all, err = k.named(ctx, k.Scope.Binding(t.tags))
	}
	if err != nil {
		return st, t.hard("looking for principals", err)
	}
	if len(all) == 0 {
		return provider.Status{Done: true, Percent: 100, State: &provider.State{}}, nil
	}
	again := provider.Status{Percent: 50, Description: "Removing the credentials", After: time.Second}
	for _, f := range all {
		_, err := t.owned(ctx, f)
		if awserr.Is(err, awserr.Absent) { // just deleted, or just made: the next list will show
			again.After = askAgain
			continue
		}
		if err == nil {
			err = k.remove(ctx, f)
		}
		if err != nil {
			return st, t.hard("removing a principal", err)
		}
	}
	return again, nil
}

// remove deletes one of the broker's principals, its keys first, so that it gives no access from
// then on. If IAM does not delete it because others have attached things to it, remove detaches
// them, and the next call deletes it.
func (k *Keeper) remove(ctx context.Context, f Found) error {
	if f.Kind == plan.User {
		if _, err := k.revoke(ctx, f.Name, ""); err != nil {
			return absentIsFine(err)
		}
	}
	if err := k.IAM.DeletePolicy(ctx, f.Kind, f.Name, policyName); absentIsFine(err) != nil {
		return err
	}
	err := k.IAM.Delete(ctx, f.Kind, f.Name)
	if !awserr.Is(err, awserr.Busy) {
		return absentIsFine(err)
	}
	hanging, err := k.IAM.Attachments(ctx, f.Kind, f.Name)
	if err != nil {
		return absentIsFine(err)
	}
	for _, detach := range hanging {
		if err := detach(ctx); absentIsFine(err) != nil {
			return err
		}
	}
	return nil
}

func absentIsFine(err error) error {
	if awserr.Is(err, awserr.Absent) {
		return nil
	}
	return err
}

// hard turns an error that only an operator can mend into a failure: at once, or, for a missing
// right, once a recent change of rights can no longer explain it. The log says what to do.
func (t *task) hard(doing string, err error) error {
	if _, failed := errors.AsType[*provider.Failure](err); failed || err == nil {
		return err
	}
	started := t.b.Instance.Operation.Started
	switch class := awserr.Of(err); {
	case class == awserr.Quota:
		t.Log.Error("the account's limits of IAM are reached: raise them, or unbind what nobody needs", "doing", doing,
			"error", err)
		return full()
	case class == awserr.Invalid:
		t.Log.Error("IAM refuses the policy or the name: correct the offering", "doing", doing, "error", err)
		return provider.Failf("The account refuses what this plan asks for. Tell the operator of the broker.")
	case class == awserr.Denied && !started.IsZero() && t.Now().After(started.Add(patience)):
		t.Log.Error("the broker lacks a right in the account: see the rights that the guide lists", "doing", doing, "error", err)
		return provider.Failf("The broker may not do this in its account. Tell the operator of the broker.")
	}
	return fmt.Errorf("%s: %w", doing, err)
}
