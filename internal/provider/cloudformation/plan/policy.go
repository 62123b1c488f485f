package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
)

// DenyAll is the policy that a quarantine puts beside a plan's policy: each principal keeps room
// for it.
const DenyAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`

// PolicyLimit returns how many bytes the plan's policy may have in a principal of this kind, filled
// and without white space: what IAM takes of all inline policies of one user or role together, less
// DenyAll. An unknown kind counts as a user.
func PolicyLimit(kind Principal) int {
	if kind == Role {
		return 10240 - len(DenyAll)
	}
	return 2048 - len(DenyAll)
}

// ErrPolicyTooLong says that a policy is longer than PolicyLimit.
var ErrPolicyTooLong = errors.New("the policy is too long")

// FillPolicy returns a plan's policy with its values filled in, in the form that IAM takes. A value
// is data: it cannot leave its string, and no letter of it has a meaning for IAM. An empty value is
// an error, since it could widen its pattern.
func FillPolicy(kind Principal, policy json.RawMessage, values map[string]string) (string, error) {
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
	filled, err := fillAll(decoded, literal)
	if err != nil {
		return "", fmt.Errorf("filling the policy: %w", err)
	}
	var out bytes.Buffer
	into := json.NewEncoder(&out)
	into.SetEscapeHTML(false) // escapes would be longer
	_ = into.Encode(filled)   // what was read from JSON can be written
	document := strings.TrimSpace(out.String())
	if most := PolicyLimit(kind); len(document) > most {
		return "", fmt.Errorf("%w: it has %d bytes without white space, and may have %d", ErrPolicyTooLong, len(document), most)
	}
	return document, nil
}

// longestValue is a generous length for an output: most are ARNs whose names derive from the
// stack's.
const longestValue = 128

// CheckPolicySize checks, when an offering is compiled, whether a policy fits with long values in
// it. FillPolicy finds all other faults of a policy.
func CheckPolicySize(kind Principal, policy json.RawMessage) error {
	values := map[string]string{
		ValueRegion: "ap-southeast-99", ValueAccount: "111122223333", ValuePartition: "aws-us-gov",
		ValueSuffix: "amazonaws.com.cn", ValuePrefix: ScopeOf("").Prefix(),
		ValueSpacePrefix: ScopeOf("").SpacePrefix(SpaceOf(provider.Instance{})),
	}
	for _, name := range Names(string(policy)) {
		values[name] = cmp.Or(values[name], strings.Repeat("x", longestValue))
	}
	if _, err := FillPolicy(kind, policy, values); errors.Is(err, ErrPolicyTooLong) {
		return &advice.Error{Name: "policy", What: "is too long for IAM", Remedy: "say the same by fewer statements and actions",
			Cause: err}
	}
	return nil
}

// literally escapes the patterns and variables of IAM policies.
var literally = strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}")

// fillAll fills in the names in all texts of a document. A name in the name of a member is an
// error.
func fillAll(v any, values map[string]string) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return Fill(v, values)
	case []any:
		for i := range v {
			if v[i], err = fillAll(v[i], values); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if len(Names(name)) > 0 {
				return nil, fmt.Errorf("%q names a member: a value cannot stand there", name)
			}
			if v[name], err = fillAll(v[name], values); err != nil {
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

// SamePolicy reports whether two documents mean the same: IAM may change the form of a document.
func SamePolicy(a, b string) bool {
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
