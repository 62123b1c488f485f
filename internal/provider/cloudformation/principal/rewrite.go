package principal

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
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
	of := provider.TagsOf(in)
	all, err := k.listed(ctx, k.Scope.InstancePath(of))
	if err != nil {
		return false, k.hard(in.Operation, "looking for principals", err)
	}
	r := &rewriting{Keeper: k, of: of, m: m, partition: values[plan.ValuePartition]}
	changed := 0
	for _, f := range all {
		document, err := plan.FillPolicy(f.Kind, m.Policy, values)
		if err == nil && m.Principal == plan.Role {
			_, err = trust(m.Assume, r.partition, "x")
		}
		if err != nil {
			t := &task{Keeper: k, b: provider.Binding{Instance: in}, m: m}
			return false, t.wrong("rewriting", err)
		}
		rewrote, err := r.principal(ctx, f, document)
		if absentIsFine(err) != nil { // it is absent if its binding was just removed
			return false, k.hard(in.Operation, "rewriting a policy", err)
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

// A rewriting is one call of Rewrite.
type rewriting struct {
	*Keeper
	of        provider.Tags // the instance's
	m         plan.Settings
	partition string
}

// principal changes one principal if it differs from the wanted one, and reports whether it did.
// Before it changes the policy of a user, it revokes all keys but the recorded one.
func (r *rewriting) principal(ctx context.Context, f Found, document string) (bool, error) {
	has, err := r.IAM.Policy(ctx, f.Kind, f.Name, policyName)
	if absentIsFine(err) != nil {
		return false, err
	}
	equal := err == nil && plan.SamePolicy(has, document)
	if equal && f.Kind == plan.User {
		return false, nil
	}
	full, err := r.IAM.Get(ctx, f.Kind, f.Name)
	if err != nil {
		return false, err
	}
	tags, err := label.Read(full.Tags)
	if err != nil || tags.OfInstance() != r.of || tags.Binding == "" {
		r.Log.Warn("something that is not ours stands among the principals of an instance: it was left as it is", "name", f.Name)
		return false, nil
	}
	if f.Kind == plan.Role && r.m.Principal == plan.Role {
		changed, err := r.entrust(ctx, full, r.m, r.partition)
		if err != nil || equal {
			return changed, err
		}
	}
	if key := full.Tags[keyLabel]; key != "" {
		if _, err := r.revoke(ctx, f.Name, key); err != nil {
			return false, err
		}
	}
	if equal {
		return false, nil
	}
	return true, r.IAM.PutPolicy(ctx, f.Kind, f.Name, policyName, document)
}
