package plan

// A TargetRule sends the orders of a platform, or of a plan, to a target.
type TargetRule struct {
	Platform string `json:"platform,omitempty"` // its id; empty for any
	Plan     string `json:"plan,omitempty"`     // empty for any; an operator writes OFFERING/PLAN, and the provider knows its id
	Target   string `json:"target"`
}

// A Target is an account and a region of it.
type Target struct {
	Account string `json:"account,omitempty"` // its 12 digits; the broker's own unless given
	Region  string `json:"region,omitempty"`  // the broker's own unless given
	// Role is the ARN of the role that the broker takes there, with the external id that
	// its trust policy asks for; empty for its own rights.
	Role       string `json:"role,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	// VPC, Subnets and CIDRs are for templates that ask for them: where their resources
	// are placed, and from which addresses they may be reached.
	VPC     string   `json:"vpc,omitempty"`
	Subnets []string `json:"subnets,omitempty"`
	CIDRs   []string `json:"cidrs,omitempty"`
}

// Value is what a plan's parameter gets of a target.
func (t Target) Value(of string) (any, bool) {
	switch {
	case of == "vpc" && t.VPC != "":
		return t.VPC, true
	case of == "subnets" && len(t.Subnets) > 0:
		return anys(t.Subnets), true
	case of == "cidrs" && len(t.CIDRs) > 0:
		return anys(t.CIDRs), true
	}
	return nil, false
}

func anys(texts []string) (out []any) {
	for _, t := range texts {
		out = append(out, t)
	}
	return out
}
