package principal

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// rewrites is how many policies one step changes at most.
const rewrites = 25

// Rewrite gives all principals of an instance the policy of m with these values, and lets only the
// principals that m names assume its roles. It leaves a principal alone that has all this already.
// It is called again until it reports done. It reads each principal with a call or two, so an
// instance of some hundred bindings fits into one step.
func (k *Keeper) Rewrite(ctx context.Context, in provider.Instance, m plan.Settings, values map[string]string) (done bool,
	err error) {
	t := &task{Keeper: k, b: provider.Binding{Instance: in}, m: m, tags: provider.TagsOf(in), values: values}
	all, err := k.listed(ctx, k.Scope.InstancePath(t.tags))
	if err != nil {
		return false, t.hard("looking for principals", err)
	}
	changed := 0
	for _, f := range all {
		document, err := plan.FillPolicy(f.Kind, m.Policy, values)
		if err == nil && m.Principal == plan.Role {
			_, err = t.trusted()
		}
		if err != nil {
			return false, t.wrong("rewriting", err)
		}
		rewrote, err := t.rewrite(ctx, f, document)
		if absentIsFine(err) != nil { // it is absent if its binding was just removed
			return false, t.hard("rewriting a policy", err)
		}
		if rewrote {
			changed++
		}
		if changed == rewrites {
			return false, nil
		}
	}
	return true, nil
}

// rewrite changes one principal if it differs from the wanted one, and reports whether it did.
// Before it changes the policy of a user, it revokes all keys but the recorded one.
func (t *task) rewrite(ctx context.Context, f Found, document string) (bool, error) {
	has, err := t.IAM.Policy(ctx, f.Kind, f.Name, policyName)
	if absentIsFine(err) != nil {
		return false, err
	}
	equal := err == nil && plan.SamePolicy(has, document)
	if equal && f.Kind == plan.User {
		return false, nil
	}
	full, err := t.IAM.Get(ctx, f.Kind, f.Name)
	if err != nil {
		return false, err
	}
	if of := full.of(); of.OfInstance() != t.tags || of.Binding == "" {
		t.Log.Warn("something of others is among the principals of an instance: the broker left it alone", "name", f.Name)
		return false, nil
	}
	if f.Kind == plan.Role && t.m.Principal == plan.Role {
		changed, err := t.entrust(ctx, full)
		if err != nil || equal {
			return changed, err
		}
	}
	if key := full.Tags[keyLabel]; key != "" {
		if _, err := t.revoke(ctx, f.Name, key); err != nil {
			return false, err
		}
	}
	if equal {
		return false, nil
	}
	return true, t.IAM.PutPolicy(ctx, f.Kind, f.Name, policyName, document)
}
