package template

import (
	"cmp"
	"fmt"
	"io/fs"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// binding reads the policy of a binding, and checks all texts that values are filled into.
func (c *checker) binding(known map[string]bool) {
	if c.PolicyFile == "" {
		if _, err := fs.Stat(c.Files, policyFile); err != nil && !c.Bindable {
			return
		}
	}
	d := c.file(c.PolicyFile, policyFile)
	if d == nil || known == nil {
		return
	}
	c.Policy = encoded(d.value)
	c.bindingPolicy(d, known)
	c.add(plan.CheckPolicySize(c.Principal, c.Policy))
	for name, text := range sorted.Map(c.Credentials) {
		c.text("credentials."+name, text, known)
	}
	if p := c.Proof; p != nil {
		c.text("proof.path", p.Path, known)
		c.text("proof.body", p.Body, known)
		for name, text := range sorted.Map(p.Headers) {
			c.text("proof.headers."+name, text, known)
		}
	} else if c.Bindable && c.Principal == plan.User {
		c.warn(advice.For("",
			"have no proof for a binding's key: the broker checks only whose key it is, not that it may do anything",
			"add proof: one call that the policy allows, such as {service: s3, method: GET, path: \"/${BucketName}\"}"))
	}
}

func (c *checker) text(setting, text string, known map[string]bool) {
	fill(text, known, func(what, mend string) { c.about(setting, what, mend) })
}

// times refuses a stack operation that may outlast the operation it belongs to: the platform would
// hear of a failure while CloudFormation is still working.
func (c *checker) times() {
	if most := int(c.Deadline.Minutes()); c.Deadline > 0 && cmp.Or(c.Minutes, plan.DefaultMinutes) >= most && c.Existing == nil {
		c.about("minutes", fmt.Sprintf("has to be less than the %d of the plan's maximum_polling_duration; %d unless given", most,
			plan.DefaultMinutes),
			"write fewer, or raise that")
	}
}
