// Package principal makes the principals of bindings of AWS services: an IAM user with one access
// key, or a role that others may assume. It owns their names, policies, keys, tags and their end;
// it knows nothing of stacks.
//
// A key whose secret was lost with its process is revoked by the next step that looks at the user:
// a step of its bind, a Rewrite, the end of the binding. A completed bind leaves the id of its key
// in a tag, to tell the recorded key from others.
package principal

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/recent"
)

// A Keeper makes, changes and removes the principals of one broker in one account. One Keeper
// serves all operations of a process: it remembers how full the account is, and how fast it may
// read.
type Keeper struct {
	IAM    IAM
	Prover Prover
	Scope  plan.Scope
	// Broker is the broker whose principals the inventory lists.
	Broker string
	// Boundary returns the ARN of the policy that bounds an offering's principals.
	Boundary func(offering string) string
	Now      func() time.Time
	Log      *slog.Logger
	// Reads limits how fast List reads tags.
	Reads *rate.Limiter

	usage recent.Values[usage]         // by kind
	read  recent.Values[provider.Tags] // tags that List has read, by ARN and time of creation
	// looked has the times of creation of the users whose keys lookLate has read, by ARN.
	looked recent.Values[time.Time]
}

const (
	// stateFormat is the version of bindingState.
	stateFormat = 1

	// A key counts as proven after proofs successes in a row, proofsApart from each other: for some
	// seconds, AWS accepts a new key in some places and refuses it in others.
	proofs      = 3
	proofsApart = time.Second
	// askAgain is the pause after IAM or a proof has shown that something new is not known
	// everywhere.
	askAgain = 2 * time.Second
	// settled is the age from which the lists of IAM surely show a thing.
	settled = 2 * time.Minute
	// roleSettles is how long a new role is held back: AWS needs some seconds to know it
	// everywhere, and the broker cannot prove a role, since it may not assume it.
	roleSettles = 10 * time.Second
	// patience is how long a refusal may be due to a change of rights that is not yet known
	// everywhere.
	patience = 2 * time.Minute

	// policyName is the name of the plan's policy in a user or role. denyName is the name of the
	// policy that a quarantine adds.
	policyName = "longshore"
	denyName   = "longshore-quarantine"

	// keyLabel is the tag with the id of a user's recorded key.
	keyLabel = "longshore:key"
)

// bindingState is the state of a binding.
type bindingState struct {
	secret.Holder
	Key    string    `json:"key,omitempty"`
	Secret string    `json:"secret,omitempty"`
	Made   time.Time `json:"made,omitzero"`
	// Proofs counts the successes in a row. At is the time of the last one.
	Proofs int       `json:"proofs,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

func (r bindingState) state() *provider.State { return provider.StateOf(stateFormat, r) }

// A task is one step of a bind or an unbind, or a Rewrite.
type task struct {
	*Keeper
	b           provider.Binding // of a Rewrite, it has only the instance
	m           plan.Settings
	kind        plan.Principal
	tags        provider.Tags // the binding's, or the instance's
	name        string
	policy      string
	credentials map[string]any
	values      map[string]string
}

// Bind makes the binding's principal in steps, like provider.Provider. values are the outputs of
// the instance and the plan.Value names. A user takes four steps or more: the first makes the user
// with its policy and its one key, and records the secret as state; each further step proves the
// key once; the last one grants the key and drops its secret from the state. A role takes two
// steps.
func (k *Keeper) Bind(ctx context.Context, b provider.Binding, m plan.Settings, values map[string]string) (
	st provider.Status, err error) {
	var was bindingState
	if err := b.State.Read(stateFormat, &was); err != nil {
		return st, err
	}
	t := &task{Keeper: k, b: b, m: m, kind: cmp.Or(m.Principal, plan.User), tags: provider.BindingTagsOf(b), values: values}
	t.name = k.Scope.Binding(t.tags)
	if err := t.fill(); err != nil { // before anything is made
		return st, err
	}
	if len(b.Secret) == 0 {
		return st, errors.New("a binding without a secret cannot be bound")
	}
	if was.Secret != "" && t.kind == plan.User {
		st, err = t.prove(ctx, was)
	} else {
		st, err = t.make(ctx)
	}
	if !awserr.Is(err, awserr.Absent, awserr.Busy) {
		return st, err
	}
	// IAM does not know the new principal everywhere yet.
	if started := b.Instance.Operation.Started; k.Now().After(started.Add(patience)) {
		k.Log.Warn("a binding waits for something of IAM: is the offering's boundary there?", "offering", m.Offering, "name",
			t.name,
			"since", started, "error", err)
	}
	return provider.Status{Percent: 20, Description: "Creating the credentials", After: askAgain}, nil
}

// fill fills the values into the policy and the credentials.
func (t *task) fill() (err error) {
	if t.policy, err = plan.FillPolicy(t.kind, t.m.Policy, t.values); err != nil {
		return t.wrong("binding", err)
	}
	t.credentials = map[string]any{}
	for name, text := range t.m.Credentials {
		if t.credentials[name], err = plan.Fill(text, t.values); err != nil {
			return t.wrong("credential "+name, err)
		}
	}
	t.credentials["region"] = t.values[plan.ValueRegion]
	return nil
}

// wrong logs that a plan cannot be bound, and returns the failure.
func (t *task) wrong(what string, err error) error {
	t.Log.Error("a plan cannot be bound: correct its offering", "offering", t.m.Offering, "plan_id", t.b.Instance.PlanID,
		"instance", t.b.Instance.ID, "what", what, "error", err)
	if errors.Is(err, plan.ErrPolicyTooLong) {
		return provider.Failf("The rights that this plan gives to a binding are more than AWS takes. " +
			"Tell the operator of the broker.")
	}
	return provider.Failf("This plan cannot be bound as it stands. Tell the operator of the broker.")
}

// make makes the principal, or finds the one that was made before.
func (t *task) make(ctx context.Context) (st provider.Status, err error) {
	mine, former, err := t.find(ctx)
	if err != nil {
		return st, err
	}
	if former {
		return provider.Status{Percent: 10, Description: "Removing a former principal", After: time.Second}, nil
	}
	if mine == nil {
		if mine, err = t.create(ctx); err != nil {
			return st, t.hard("creating a principal", err)
		}
	}
	if t.kind == plan.Role {
		return t.role(ctx, mine)
	}
	if err := t.IAM.PutPolicy(ctx, t.kind, t.name, policyName, t.policy); err != nil {
		return st, t.hard("putting the policy of a user", err)
	}
	return t.key(ctx)
}

// find returns the binding's principal, nil if the lists do not show it. It removes its principals
// of the other kind, which were made before its plan was changed, and reports whether there were
// any. Any other principal under its path is a failure.
func (t *task) find(ctx context.Context) (mine *Found, former bool, err error) {
	all, err := t.listed(ctx, t.Scope.BindingPath(t.tags))
	if err != nil {
		return nil, false, err
	}
	for _, f := range all {
		full, err := t.owned(ctx, f)
		if err != nil {
			return nil, false, err
		}
		if f.Kind == t.kind && f.Name == t.name {
			mine = &full
			continue
		}
		former = true
		if err := t.remove(ctx, f); err != nil {
			return nil, former, t.hard("removing a former principal", err)
		}
	}
	return mine, former, nil
}

// create makes the principal. If one with its name exists that the lists do not show, create takes
// it, provided that it is the binding's.
func (t *task) create(ctx context.Context) (*Found, error) {
	if err := t.room(ctx, t.kind); err != nil {
		return nil, err
	}
	w := Wanted{
		Name: t.name, Path: t.Scope.BindingPath(t.tags), Boundary: t.Boundary(t.m.Offering),
		Tags: append(label.Write(t.tags), plan.PlaceLabels(t.b.Instance.Place)...),
	}
	if t.kind == plan.Role {
		names, err := t.trusted()
		if err != nil {
			return nil, t.wrong("assume", err)
		}
		w.Trust = trust(names, t.externalID())
	}
	err := t.IAM.Create(ctx, t.kind, w)
	if awserr.Is(err, awserr.Exists) {
		full, err := t.owned(ctx, Found{Kind: t.kind, Name: t.name})
		return &full, err
	}
	return &Found{Name: t.name, Created: t.Now()}, err
}

// key makes the one key of a user. It revokes all others, which were never recorded.
func (t *task) key(ctx context.Context) (st provider.Status, err error) {
	if _, err := t.revoke(ctx, t.name, ""); err != nil {
		return st, t.hard("revoking keys that were never recorded", err)
	}
	made, err := t.IAM.CreateKey(ctx, t.name)
	if awserr.Is(err, awserr.Quota) { // the list did not show all keys yet
		return provider.Status{Percent: 20, Description: "Creating the key", After: askAgain}, nil
	}
	if err != nil {
		return st, t.hard("creating a key", err)
	}
	r := bindingState{Key: made.ID, Secret: made.Secret, Made: t.Now()}
	return provider.Status{State: r.state(), Percent: 40, Description: "Waiting for AWS to know the key", After: time.Second}, nil
}

// prove tries the recorded key once more, and grants it after enough successes in a row.
func (t *task) prove(ctx context.Context, was bindingState) (st provider.Status, err error) {
	waiting := provider.Status{Percent: 40 + 20*was.Proofs, Description: "Waiting for AWS to know the key"}
	if next := was.At.Add(proofsApart); was.Proofs > 0 && t.Now().Before(next) {
		waiting.After = next.Sub(t.Now())
		return waiting, nil
	}
	there, err := t.revoke(ctx, t.name, was.Key)
	if err != nil && !awserr.Is(err, awserr.Absent) {
		return st, t.hard("reading the keys of a user", err)
	}
	if !there && t.Now().After(was.Made.Add(settled)) { // somebody has removed it
		waiting.State, waiting.After = &provider.State{}, time.Second
		return waiting, nil
	}
	ok, said, err := t.Prover.Prove(ctx, Key{ID: was.Key, Secret: was.Secret}, t.m.Proof, t.values)
	if err != nil {
		return st, fmt.Errorf("proving a key: %w", err)
	}
	if !ok {
		if t.Now().After(was.Made.Add(patience)) {
			t.Log.Warn("a new key does not prove itself: does the plan's policy allow its proof?", "offering", t.m.Offering,
				"user", t.name,
				"since", was.Made, "said", said)
		}
		was.Proofs = 0
		waiting.State, waiting.After = was.state(), askAgain
		return waiting, nil
	}
	was.Proofs, was.At = was.Proofs+1, t.Now()
	if was.Proofs < proofs {
		waiting.State, waiting.After = was.state(), proofsApart
		return waiting, nil
	}
	// An update that has overtaken the bind may not have found the user in IAM's lists.
	changed, err := t.permit(ctx)
	if err != nil {
		return st, err
	}
	if changed {
		was.Proofs = 0
		waiting.State, waiting.After = was.state(), askAgain
		return waiting, nil
	}
	// By now, the lists may show principals that they did not show at first.
	if _, former, err := t.find(ctx); err != nil || former {
		waiting.After = time.Second
		return waiting, err
	}
	if err := t.IAM.SetTags(ctx, t.kind, t.name, []label.Label{{Name: keyLabel, Value: was.Key}}); err != nil {
		return st, t.hard("marking the key of a user", err)
	}
	t.credentials["access_key_id"], t.credentials["secret_access_key"] = was.Key, was.Secret
	return provider.Status{Done: true, Percent: 100, State: bindingState{Key: was.Key}.state(),
		Grant: &provider.Grant{Credentials: t.credentials}}, nil
}

// revoke deletes all keys of a user but the one with the id but, and reports whether that key
// exists.
func (k *Keeper) revoke(ctx context.Context, user, but string) (there bool, err error) {
	keys, err := k.IAM.Keys(ctx, user)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		if key.ID == but {
			there = true
		} else if err := k.IAM.DeleteKey(ctx, user, key.ID); err != nil && !awserr.Is(err, awserr.Absent) {
			return there, err
		}
	}
	return there, nil
}

// permit gives the principal the plan's policy, and reports whether it had another one.
func (t *task) permit(ctx context.Context) (changed bool, err error) {
	has, err := t.IAM.Policy(ctx, t.kind, t.name, policyName)
	if absentIsFine(err) != nil {
		return false, t.hard(fmt.Sprintf("reading the policy of a %s", t.kind), err)
	}
	if plan.SamePolicy(has, t.policy) {
		return false, nil
	}
	err = t.IAM.PutPolicy(ctx, t.kind, t.name, policyName, t.policy)
	return true, t.hard(fmt.Sprintf("putting the policy of a %s", t.kind), err)
}

// role grants a role, which has no secret, once its policies are right and AWS has had the time to
// know the role everywhere.
func (t *task) role(ctx context.Context, mine *Found) (st provider.Status, err error) {
	changed, err := t.permit(ctx)
	if err == nil && !changed {
		changed, err = t.entrust(ctx, *mine)
		err = t.hard("saying who may assume a role", err)
	}
	if err != nil {
		return st, err
	}
	waiting := provider.Status{Percent: 60, Description: "Waiting for AWS to know the role", After: roleSettles}
	if changed {
		return waiting, nil
	}
	if waiting.After = mine.Created.Add(roleSettles).Sub(t.Now()); waiting.After > 0 {
		return waiting, nil
	}
	t.credentials["role_arn"], t.credentials["external_id"] = mine.ARN, t.externalID()
	return provider.Status{Done: true, Percent: 100, Grant: &provider.Grant{Credentials: t.credentials}}, nil
}

// externalID returns the external id that is needed to assume the binding's role: the same in each
// step, and a different one for each binding.
func (t *task) externalID() string {
	sum := hmac.New(sha256.New, t.b.Secret)
	sum.Write([]byte("external id of a role"))
	return base32.StdEncoding.EncodeToString(sum.Sum(nil)[:20])
}
