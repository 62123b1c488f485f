package principal

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// IAM is the part of AWS IAM that a Keeper calls. Errors have a class of package awserr. Every call
// but Keys.CreateKey may be repeated after its answer was lost.
type IAM interface {
	Principals
	Policies
	Keys
}

// Principals are the users and roles of an account.
type Principals interface {
	// List reads the principals below a path, without their tags, in pages of most at most. It may
	// not show a principal yet that was just made, and still show one that was just deleted.
	List(ctx context.Context, kind plan.Principal, path, cursor string, most int) (page []Found, next string, err error)
	// Get returns a principal by its name, with its tags.
	Get(ctx context.Context, kind plan.Principal, name string) (Found, error)
	Create(ctx context.Context, kind plan.Principal, w Wanted) error
	// SetTrust says who may assume a role.
	SetTrust(ctx context.Context, role, document string) error
	// SetTags leaves other tags as they are.
	SetTags(ctx context.Context, kind plan.Principal, name string, tags []label.Label) error
	DropTags(ctx context.Context, kind plan.Principal, name string, tags ...string) error
	// Delete is refused as awserr.Busy while something is attached to the principal.
	Delete(ctx context.Context, kind plan.Principal, name string) error
}

// Policies are the inline policies of users and roles, and the other things that are attached to
// them.
type Policies interface {
	Policy(ctx context.Context, kind plan.Principal, name, policy string) (document string, err error)
	PutPolicy(ctx context.Context, kind plan.Principal, name, policy, document string) error
	DeletePolicy(ctx context.Context, kind plan.Principal, name, policy string) error
	// Attachments returns all that must go before a principal can be deleted, except its access
	// keys; its inline policies are among them. A Keeper attaches nothing else; people may.
	Attachments(ctx context.Context, kind plan.Principal, name string) ([]Detach, error)
}

// Keys are the access keys of users, and the quotas of the account.
type Keys interface {
	Keys(ctx context.Context, user string) ([]KeyInfo, error)
	// CreateKey is tried only once: if its answer is lost, nobody knows the secret of the key.
	CreateKey(ctx context.Context, user string) (Key, error)
	SetKey(ctx context.Context, user, id string, active bool) error
	DeleteKey(ctx context.Context, user, id string) error
	// Usage returns how many principals of a kind the account has and may have; 0 if it does not
	// say.
	Usage(ctx context.Context, kind plan.Principal) (made, most int, err error)
}

// Found is an existing user or role.
type Found struct {
	Kind      plan.Principal
	Name, ARN string
	Created   time.Time // UTC
	Tags      map[string]string
	// Trust is the policy document that says who may assume a role; empty for a user.
	Trust string
}

// of returns whose it is by its tags; zero if they do not say, so that it is nobody's.
func (f Found) of() provider.Tags {
	tags, _ := label.Read(f.Tags)
	return tags
}

// Wanted is a user or role to be made.
type Wanted struct {
	Name, Path string
	Tags       []label.Label
	Boundary   string // the ARN of the policy that bounds it; never empty
	Trust      string // for a role
}

// A Key is a new access key.
type Key struct {
	secret.Holder
	ID, Secret string
}

// A KeyInfo is what IAM still tells about a key after its creation.
type KeyInfo struct {
	ID     string
	Active bool
}

// A Detach removes one thing that is attached to a principal.
type Detach func(ctx context.Context) error

// A Prover tests a new access key.
type Prover interface {
	// Prove makes one call with the key: the plan's proof, or a call that only asks whose the key
	// is. It reports whether the call succeeded; if not, said is the reason for logs, with AWS's
	// code.
	Prove(ctx context.Context, key Key, proof *plan.Proof, values map[string]string) (ok bool, said string, err error)
}
