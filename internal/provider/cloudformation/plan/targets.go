package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// DefaultTarget is the name of the target of orders that choose none: the broker's own account and
// region.
const DefaultTarget = "default"

// Targets says where instances are made, as the operator wrote it.
type Targets struct {
	// Targets is keyed by name. DefaultTarget always exists.
	Targets map[string]Target `json:"targets,omitempty"`
	// Rules choose the target of an instance when it is ordered; the first rule that fits decides.
	// If none fits, the plan's setting target decides, and if it is not set, DefaultTarget is
	// taken.
	Rules []TargetRule `json:"rules,omitempty"`
}

// Choose returns the name of the target of a new instance.
func (t Targets) Choose(in provider.Instance) string {
	for _, r := range t.Rules {
		if (r.Platform == "" || r.Platform == in.Platform) && (r.Plan == "" || r.Plan == in.PlanID) {
			return r.Target
		}
	}
	name, _ := in.Settings["target"].(string)
	return cmp.Or(name, DefaultTarget)
}

// Named looks up a target by its name.
func (t Targets) Named(name string) (Target, error) {
	at, ok := t.Targets[name]
	if !ok && name != DefaultTarget {
		return at, &target.Trouble{Kind: target.Unknown, Target: name,
			Message: "it is not in the current settings: add it again"}
	}
	return at, nil
}

// Names returns the names of all targets, in order.
func (t Targets) Names() []string {
	all := append(slices.Collect(maps.Keys(t.Targets)), DefaultTarget)
	slices.Sort(all)
	return slices.Compact(all)
}

// String returns the targets as JSON.
func (t Targets) String() string {
	text, _ := json.Marshal(t) // texts always encode
	return string(text)
}

// A TargetRule sends the orders of a platform, or of a plan, to a target.
type TargetRule struct {
	Platform string `json:"platform,omitempty"` // the platform's id; empty for any
	Plan     string `json:"plan,omitempty"`     // empty for any; an operator writes OFFERING/PLAN, and the provider knows its id
	Target   string `json:"target"`
}

// A Target is an account and a region of it.
type Target struct {
	Account string `json:"account,omitempty"` // the 12 digits of its id; empty for the broker's own
	Region  string `json:"region,omitempty"`  // empty for the broker's own
	// Role is the ARN of the role that the broker assumes there, and ExternalID the one that the
	// role's trust policy asks for. Without a role, the broker uses its own rights.
	Role       string `json:"role,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	// VPC, Subnets and CIDRs are for templates that ask for them. They say where resources are
	// placed, and from which addresses they may be reached.
	VPC     string   `json:"vpc,omitempty"`
	Subnets []string `json:"subnets,omitempty"`
	CIDRs   []string `json:"cidrs,omitempty"`
}

// Value returns the value that a target has for a plan's parameter; empty if it has none.
func (t Target) Value(of string) string {
	return map[string]string{
		"vpc": t.VPC, "subnets": strings.Join(t.Subnets, ","), "cidrs": strings.Join(t.CIDRs, ","),
	}[of]
}
