package principal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A trustPolicy says who may assume a role. IAM writes a single name without a list.
type trustPolicy struct {
	Version   string
	Statement []trustStatement
}

type trustStatement struct {
	Effect    string
	Action    any // one text; a list is possible in a trust policy that somebody else has written
	Principal struct{ AWS iampolicy.Texts }
	Condition struct {
		StringEquals map[string]string
	}
}

const externalIDKey = "sts:ExternalId"

// trust returns a policy that lets the principals that the plan names assume a role, only with the
// binding's external id.
func (t *task) trust(externalID string) (trustPolicy, error) {
	s := trustStatement{Effect: iampolicy.EffectAllow, Action: "sts:AssumeRole"}
	for _, name := range t.m.Assume {
		if name == "" || strings.ContainsAny(name, "*?$") {
			return trustPolicy{}, errors.New("it must name accounts and roles one by one")
		}
		if strings.Trim(name, "0123456789") == "" {
			name = "arn:" + t.values[plan.ValuePartition] + ":iam::" + name + ":root"
		}
		s.Principal.AWS = append(s.Principal.AWS, name)
	}
	if len(t.m.Assume) == 0 {
		return trustPolicy{}, errors.New("it names nobody")
	}
	s.Condition.StringEquals = map[string]string{externalIDKey: externalID}
	return trustPolicy{Version: iampolicy.Version, Statement: []trustStatement{s}}, nil
}

func (p trustPolicy) document() string {
	raw, _ := json.Marshal(p) // texts always encode
	return string(raw)
}

// entrust lets only the principals that the plan names now assume a role, with the role's present
// external id, and reports whether it changed the trust policy. It leaves a trust policy without an
// external id alone: somebody else has written it.
func (t *task) entrust(ctx context.Context, role Found) (bool, error) {
	var has trustPolicy
	err := json.Unmarshal([]byte(role.Trust), &has)
	if err != nil || len(has.Statement) != 1 || has.Statement[0].Condition.StringEquals[externalIDKey] == "" {
		t.Log.Warn("somebody has changed who may assume a binding's role: it was left alone", "name", role.Name)
		return false, nil
	}
	s := has.Statement[0]
	want, err := t.trust(s.Condition.StringEquals[externalIDKey])
	if err != nil {
		return false, t.wrong("assume", err)
	}
	if sameNames(s.Principal.AWS, want.Statement[0].Principal.AWS) {
		return false, nil
	}
	return true, t.IAM.SetTrust(ctx, role.Name, want.document())
}

// sameNames compares names, in any order.
func sameNames(a, b []string) bool {
	once := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	return slices.Equal(once(a), once(b))
}
