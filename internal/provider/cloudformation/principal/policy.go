package principal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

const (
	// policyName is that of the plan's policy in a user or role, and denyName that of
	// the one which stands beside it in a quarantine.
	policyName = "longshore"
	denyName   = "longshore-quarantine"
	denyAll    = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`
)

// limits are what IAM takes of policies inside one user or role, all of them together,
// in characters that are no white space.
var limits = map[plan.Principal]int{plan.User: 2048, plan.Role: 10240}

// PolicyLimit is how many bytes the plan's policy may have, filled and without white
// space: there must be room for the one that denies all in a quarantine.
func PolicyLimit(kind plan.Principal) int { return limits[kind] - len(denyAll) }

// ErrPolicyTooLong says that a policy is more than PolicyLimit.
var ErrPolicyTooLong = errors.New("the policy is too long")

// FillPolicy gives a plan's policy with its values in it, as IAM takes it. A value is
// data: it stands inside of its string, and no letter of it means anything to IAM. A
// value that is empty is an error, as it could widen what it stands in.
func FillPolicy(kind plan.Principal, policy json.RawMessage, values map[string]string) (string, error) {
	decoded, err := decode(string(policy))
	if err != nil {
		return "", fmt.Errorf("reading the policy: %w", err)
	}
	literal := make(map[string]string, len(values))
	for name, value := range values {
		if value != "" {
			literal[name] = literally.Replace(value)
		}
	}
	filled, err := fill(decoded, literal)
	if err != nil {
		return "", fmt.Errorf("filling the policy: %w", err)
	}
	var out bytes.Buffer
	into := json.NewEncoder(&out)
	into.SetEscapeHTML(false) // it is longer
	if err := into.Encode(filled); err != nil {
		return "", fmt.Errorf("writing the policy: %w", err)
	}
	document := strings.TrimSpace(out.String())
	if most := PolicyLimit(kind); len(document) > most {
		return "", fmt.Errorf("%w: it has %d bytes without white space; that of a %s may have %d", ErrPolicyTooLong, len(document), kind, most)
	}
	return document, nil
}

// CheckPolicySize finds out, when an offering is compiled, whether a policy fits: the
// values are the longest that can be.
func CheckPolicySize(kind plan.Principal, policy json.RawMessage, values map[string]string) error {
	_, err := FillPolicy(kind, policy, values)
	return err
}

// literally takes their meaning from what IAM's policies read as patterns and
// variables.
var literally = strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}")

// fill replaces the names in all texts of a document but in those that name a member.
func fill(v any, values map[string]string) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return plan.Fill(v, values)
	case []any:
		for i := range v {
			if v[i], err = fill(v[i], values); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if len(plan.Names(name)) > 0 {
				return nil, fmt.Errorf("%q names a member: a value cannot stand there", name)
			}
			if v[name], err = fill(v[name], values); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func decode(document string) (v any, err error) {
	from := json.NewDecoder(strings.NewReader(document))
	from.UseNumber()
	return v, from.Decode(&v)
}

// same reports whether two documents mean the same: IAM may write one in its own way.
func same(a, b string) bool {
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
