package account

import (
	"encoding/json"
	"fmt"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
)

// Parts spreads statements over as many policies as IAM needs. A statement that is too long for one
// policy is split by its resources.
func Parts(all []iampolicy.Statement) (parts []iampolicy.Document) {
	for len(all) > 0 {
		fit := 0
		for fit < len(all) && len(textOf(all[:fit+1])) <= mostPolicy {
			fit++
		}
		if fit == 0 {
			first, second := halves(all[0])
			all = append([]iampolicy.Statement{first, second}, all[1:]...)
			continue
		}
		parts, all = append(parts, policyOf(all[:fit])), all[fit:]
	}
	return parts
}

func policyOf(all []iampolicy.Statement) iampolicy.Document {
	return iampolicy.Document{Version: iampolicy.Version, Statement: all}
}

// halves splits a statement into two that together allow the same. It splits the resources, whose
// number grows with the broker's targets.
func halves(s iampolicy.Statement) (first, second iampolicy.Statement) {
	if len(s.Resource) < 2 {
		panic(fmt.Sprintf("the statement %s cannot be parted", s.Sid)) // too many actions, which this package writes itself
	}
	first, second = s, s
	half := len(s.Resource) / 2
	first.Resource, second.Resource = s.Resource[:half], s.Resource[half:]
	second.Sid += "More" // the Sid stays unique in its policy, however often the statement is split
	return first, second
}

// textOf returns the text of the policy with these statements.
func textOf(all []iampolicy.Statement) []byte {
	raw, _ := json.Marshal(policyOf(all)) // texts always encode
	return raw
}
