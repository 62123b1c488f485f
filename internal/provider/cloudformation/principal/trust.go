package principal

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// trusting is who may assume a role: a policy document.
type trusting struct {
	Version   string
	Statement []trusted
}

type trusted struct {
	Effect    string
	Action    string
	Principal struct{ AWS []string }
	Condition struct {
		StringEquals map[string]string
	}
}

const externalIDKey = "sts:ExternalId"

// trust lets those whom a plan names assume a role, and only with the binding's
// external id.
func trust(assume []string, partition, externalID string) (string, error) {
	s := trusted{Effect: "Allow", Action: "sts:AssumeRole"}
	for _, name := range assume {
		if name == "" || strings.ContainsAny(name, "*?$") {
			return "", errors.New("it must name accounts and roles one by one")
		}
		if strings.Trim(name, "0123456789") == "" {
			name = "arn:" + partition + ":iam::" + name + ":root"
		}
		s.Principal.AWS = append(s.Principal.AWS, name)
	}
	if len(assume) == 0 {
		return "", errors.New("it names nobody")
	}
	s.Condition.StringEquals = map[string]string{externalIDKey: externalID}
	document, err := json.Marshal(trusting{Version: "2012-10-17", Statement: []trusted{s}})
	return string(document), err
}

// entrust has a role be assumed by those alone whom a plan names now, with the external
// id that it has, and reports whether that was different. IAM writes one name without a
// list. What somebody else has written, without such an id, stays.
func (k *Keeper) entrust(ctx context.Context, role Found, m plan.Settings, partition string) (bool, error) {
	var has struct {
		Statement []struct {
			Principal struct{ AWS any }
			Condition struct {
				StringEquals map[string]string
			}
		}
	}
	err := json.Unmarshal([]byte(role.Trust), &has)
	if err != nil || len(has.Statement) != 1 || has.Statement[0].Condition.StringEquals[externalIDKey] == "" {
		k.Log.Warn("somebody has changed who may assume a binding's role: it was left as it is", "name", role.Name)
		return false, nil
	}
	s := has.Statement[0]
	wanted, err := trust(m.Assume, partition, s.Condition.StringEquals[externalIDKey])
	if err != nil {
		return false, err
	}
	var want trusting
	if err := json.Unmarshal([]byte(wanted), &want); err != nil {
		return false, err
	}
	if sameNames(s.Principal.AWS, want.Statement[0].Principal.AWS) {
		return false, nil
	}
	return true, k.IAM.SetTrust(ctx, role.Name, wanted)
}

// sameNames compares what IAM tells, a text or a list in any order, to names.
func sameNames(told any, names []string) bool {
	if one, ok := told.(string); ok {
		told = []any{one}
	}
	list, _ := told.([]any)
	left := map[any]bool{}
	for _, name := range names {
		left[name] = true
	}
	for _, name := range list {
		if !left[name] {
			return false
		}
		delete(left, name)
	}
	return len(left) == 0
}
