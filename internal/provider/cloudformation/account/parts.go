package account

import (
	"encoding/json"
	"fmt"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
)

// Parts spreads statements over as many policies as IAM needs to take them. A statement that is
// too long for one is repeated in the next, with the rest of its resources.
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

// halves splits a statement in two that together allow the same. It splits the resources, which
// grow with the targets of a broker.
func halves(s iampolicy.Statement) (first, second iampolicy.Statement) {
	if len(s.Resource) < 2 {
		panic(fmt.Sprintf("the statement %s cannot be parted", s.Sid)) // its actions are this package's
	}
	first, second = s, s
	half := len(s.Resource) / 2
	first.Resource, second.Resource = s.Resource[:half], s.Resource[half:]
	second.Sid += "More" // unique in its policy, however often it is parted
	return first, second
}

func sizeOf(d iampolicy.Document) int {
	raw, _ := json.Marshal(d) // texts
	return len(raw)
}
