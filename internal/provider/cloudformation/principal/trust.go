package principal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
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

// trusted returns the ARNs of the principals that the plan lets assume a role.
func (t *task) trusted() (names iampolicy.Texts, err error) {
	for _, name := range t.m.Assume {
		if name == "" || strings.ContainsAny(name, "*?$") {
			return nil, errors.New("it must name accounts and roles one by one")
		}
		if strings.Trim(name, "0123456789") == "" {
			name = "arn:" + t.values[plan.ValuePartition] + ":iam::" + name + ":root"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, errors.New("it names nobody")
	}
	return names, nil
}

// trust returns a policy that lets the names assume a role, only with the binding's external id.
func trust(names iampolicy.Texts, externalID string) string {
	s := trustStatement{Effect: iampolicy.EffectAllow, Action: "sts:AssumeRole"}
	s.Principal.AWS = names
	s.Condition.StringEquals = map[string]string{externalIDKey: externalID}
	raw, _ := json.Marshal(trustPolicy{iampolicy.Version, []trustStatement{s}}) // texts always encode
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
	names, err := t.trusted()
	if err != nil {
		return false, t.wrong("assume", err)
	}
	if slices.Equal(sorted.Set(s.Principal.AWS), sorted.Set(names)) {
		return false, nil
	}
	return true, t.IAM.SetTrust(ctx, role.Name, trust(names, s.Condition.StringEquals[externalIDKey]))
}
