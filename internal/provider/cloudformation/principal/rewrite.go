package principal

import (
	"context"

	"github.com/longshore/longshore/internal/awserr"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// rewrites is how many policies one step changes.
const rewrites = 25

// Rewrite gives the policies of all principals of an instance what m and the values
// say, and leaves those alone that say it. Not done means that it is to be called
// again. The policy of each is read, one call for each: an instance of some hundred
// bindings fits into a step.
func (k *Keeper) Rewrite(ctx context.Context, in provider.Instance, m plan.Meaning, values map[string]string) (done bool, err error) {
	tags := provider.TagsOf(in)
	all, err := k.listed(ctx, k.Scope.InstancePath(tags))
	if err != nil {
		return false, k.hard(in.Operation, "looking for principals", err)
	}
	documents := map[plan.Principal]string{}
	changed := 0
	for _, f := range all {
		document, ok := documents[f.kind]
		if !ok {
			if document, err = FillPolicy(f.kind, m.Policy, values); err != nil {
				t := &task{Keeper: k, b: provider.Binding{Instance: in}, m: m}
				return false, t.wrong("rewriting", err)
			}
			documents[f.kind] = document
		}
		rewrote, err := k.rewrite(ctx, f, tags, document)
		if err != nil {
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

// rewrite changes the policy of one principal if it says something else, and reports
// whether it did. A key beside the recorded one goes with it.
func (k *Keeper) rewrite(ctx context.Context, f found, of provider.Tags, document string) (bool, error) {
	has, err := k.IAM.Policy(ctx, f.kind, f.Name, policyName)
	if err == nil && same(has, document) {
		return false, nil
	}
	if absentIsFine(err) != nil {
		return false, err
	}
	full, err := k.IAM.Get(ctx, f.kind, f.Name)
	if awserr.Is(err, awserr.Absent) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	tags, err := provider.TagsFrom(full.Tags)
	if of.Binding, of.Incarnation = tags.Binding, tags.Incarnation; err != nil || tags != of || tags.Binding == "" {
		k.Log.Warn("something that is not ours stands among the principals of an instance: it was left as it is", "name", f.Name)
		return false, nil
	}
	if key := full.Tags[keyLabel]; key != "" {
		if _, err := k.revoke(ctx, f.Name, key); absentIsFine(err) != nil {
			return false, err
		}
	}
	return true, k.IAM.PutPolicy(ctx, f.kind, f.Name, policyName, document)
}
