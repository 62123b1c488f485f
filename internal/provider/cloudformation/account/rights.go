package account

import (
	_ "embed" // for the rights
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// UnknownKeys are the keys of conditions that emulators of AWS do not know, and that Options.Emulated
// leaves out.
var UnknownKeys = []string{"iam:PermissionsBoundary", "iam:PassedToService", "cloudformation:RoleArn"}

// rights holds all statements that are the same for every offering, with the names of what readRights
// fills in. IAM leaves no room for comments in it:
//   - An emulator leaves out the path of a user or role, so each stands there in a second form, without
//     a path; on AWS, that form matches principals without a path.
//   - ServiceRoles names those of all offerings, including those that have left the catalog: their stacks
//     still have to be deleted.
//   - StacksEnd: without a role in the call, CloudFormation takes the role that the stack was made with.
//   - TemplateNames: without the right to list, a missing template would look forbidden.
//   - From Buckets to Tables: the broker counts and removes the contents of an instance, and never reads
//     them. It marks the resources that outlive a stack that was deleted by hand.
//   - Unnamed and Listing: these actions know no resources.
//   - OtherSecrets: CloudFormation resolves {{resolve:…}} in a template with the service role.
//   - OtherBrokers denies everything on resources with the tag of another broker. The name of a key does
//     not tell whose it is, and two brokers may offer keys through the same offering.
//
//go:embed rights.json
var rights string

// statements are those of rights.json.
type statements struct {
	Rights, Inventory []iampolicy.Statement
	// These are denials that no permissions and no plan's policy can undo, for service roles, for
	// boundaries, and for both.
	ServiceRole, Boundary, Both []iampolicy.Statement
}

func readRights(scope plan.Scope) (all statements) {
	read(rights, scope, nil, &all)
	return all
}

// Rights returns what a broker may do in an account. It can make stacks and principals only under
// its own prefix, stacks only with the role of an offering, and principals only below a boundary.
// It can neither make nor change the roles of offerings and the boundaries.
func Rights(scope plan.Scope, o Options) []iampolicy.Statement {
	all := readRights(scope).Rights
	for i, s := range all {
		for _, keys := range s.Condition {
			if o.Emulated && slices.ContainsFunc(UnknownKeys, func(key string) bool { return keys[key] != nil }) {
				all[i].Condition = nil // it has no other key
			}
		}
	}
	return append(o.everywhere(all), Inventory(scope, o)...)
}

// Inventory returns those of Rights that listing needs: they change nothing.
func Inventory(scope plan.Scope, o Options) []iampolicy.Statement {
	all := readRights(scope).Inventory
	if len(o.Access) > 0 {
		all = append(all, iampolicy.Statement{
			Sid: "Accounts", Effect: iampolicy.EffectAllow, Action: iampolicy.Texts{"sts:AssumeRole"}, Resource: o.Access,
		})
	}
	return o.everywhere(all)
}

// Listing returns the policy of a session that lists an account through a role with more rights. A
// session has only the rights that both give; the role limits them to resources.
func Listing(scope plan.Scope) string {
	listing := iampolicy.Statement{Sid: "Listing", Effect: iampolicy.EffectAllow, Resource: iampolicy.Texts{"*"}}
	for _, s := range Inventory(scope, Options{}) {
		listing.Action = append(listing.Action, s.Action...)
	}
	return string(textOf([]iampolicy.Statement{listing}))
}

// everywhere extends the rights in the place's region to the other regions.
func (o Options) everywhere(all []iampolicy.Statement) []iampolicy.Statement {
	for i, s := range all {
		var more iampolicy.Texts
		for _, region := range o.Regions {
			for _, on := range s.Resource {
				if strings.Contains(on, Here.Region) {
					more = append(more, strings.ReplaceAll(on, Here.Region, region))
				}
			}
		}
		all[i].Resource = slices.Concat(s.Resource, more)
	}
	return all
}
