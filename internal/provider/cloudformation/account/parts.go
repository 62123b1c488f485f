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
		d := iampolicy.Document{Version: iampolicy.Version}
		for len(all) > 0 {
			grown := d
			if grown.Statement = append(d.Statement[:len(d.Statement):len(d.Statement)], all[0]); sizeOf(grown) > mostPolicy {
				break
			}
			d, all = grown, all[1:]
		}
		if len(d.Statement) > 0 {
			parts = append(parts, d)
			continue
		}
		first, second := halves(all[0])
		all = append([]iampolicy.Statement{first, second}, all[1:]...)
	}
	return parts
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

func sizeOf(d iampolicy.Document) int {
	raw, _ := json.Marshal(d) // texts always encode
	return len(raw)
}
