package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// binding reads the policy of a binding, and checks all texts that are filled in.
func (c *checker) binding(m *plan.Settings, known map[string]bool) {
	if c.policy == "" {
		if _, err := fs.Stat(c.Files, policyFile); err != nil && !c.Bindable {
			return
		}
	}
	d := c.file(c.policy, policyFile)
	if d == nil || known == nil {
		return
	}
	text, err := json.Marshal(d.value)
	c.add(err)
	m.Policy = text
	c.bindingPolicy(d, known)
	c.add(plan.CheckPolicySize(c.principal, text))
	for _, name := range slices.Sorted(maps.Keys(c.credentials)) {
		c.text("credentials."+name, c.credentials[name], known)
	}
	if p := c.proof; p != nil {
		c.text("proof.path", p.Path, known)
		c.text("proof.body", p.Body, known)
		for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
			c.text("proof.headers."+name, p.Headers[name], known)
		}
	} else if c.Bindable && c.principal == plan.User {
		c.warn(advice.For("", "have no proof of a binding's key: it is shown to be the user's, not to be of use",
			"add proof: one call that the policy allows, such as {service: s3, method: GET, path: \"/${BucketName}\"}"))
	}
}

func (c *checker) text(setting, text string, known map[string]bool) {
	c.fill(text, known, func(what, mend string) { c.about(setting, what, mend) })
}

// times refuses a stack operation that outlasts the operation that it is for: the
// platform would hear of a failure while CloudFormation still works.
func (c *checker) times() {
	if most := int(c.Deadline.Minutes()); c.Deadline > 0 && cmp.Or(c.minutes, plan.DefaultMinutes) >= most && c.existing == nil {
		c.about("minutes", fmt.Sprintf("has to be less than the %d of the plan's maximum_polling_duration; %d unless given", most,
			plan.DefaultMinutes),
			"write fewer, or raise that")
	}
}
