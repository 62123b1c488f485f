package principal

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// IAM is the part of AWS IAM that a Keeper calls. Errors are of the classes of package awserr;
// all but Keys.CreateKey may be called again after an answer was lost.
type IAM interface {
	Principals
	Policies
	Keys
}

// Principals are the users and roles of an account.
type Principals interface {
	// List reads the principals below a path, in pages of at most so many, without their tags.
	// It may not show yet one that was just made, and still show one that was just deleted.
	List(ctx context.Context, kind plan.Principal, path, cursor string, most int) (page []Found, next string, err error)
	// Get gives one by its name, with its tags.
	Get(ctx context.Context, kind plan.Principal, name string) (Found, error)
	Create(ctx context.Context, kind plan.Principal, w Wanted) error
	// SetTrust says who may assume a role.
	SetTrust(ctx context.Context, role, document string) error
	// SetTags leaves other tags as they are.
	SetTags(ctx context.Context, kind plan.Principal, name string, tags []label.Label) error
	DropTags(ctx context.Context, kind plan.Principal, name string, tags ...string) error
	// Delete is refused as awserr.Busy while something hangs on it.
	Delete(ctx context.Context, kind plan.Principal, name string) error
}

// Policies are the policies inside of users and roles, and other things that hang on them.
type Policies interface {
	Policy(ctx context.Context, kind plan.Principal, name, policy string) (document string, err error)
	PutPolicy(ctx context.Context, kind plan.Principal, name, policy, document string) error
	DeletePolicy(ctx context.Context, kind plan.Principal, name, policy string) error
	// Attachments are all that must go before a principal can be deleted, except its access
	// keys: policies of its own among them. A Keeper makes no others; people may.
	Attachments(ctx context.Context, kind plan.Principal, name string) ([]Attachment, error)
}

// Keys are the access keys of users, and what the account allows.
type Keys interface {
	Keys(ctx context.Context, user string) ([]KeyInfo, error)
	// CreateKey is tried once: nobody knows the secret of a key whose answer was lost.
	CreateKey(ctx context.Context, user string) (Key, error)
	SetKey(ctx context.Context, user, id string, active bool) error
	DeleteKey(ctx context.Context, user, id string) error
	// Usage tells how many of a kind the account holds and may hold; 0 where it does
	// not say.
	Usage(ctx context.Context, kind plan.Principal) (made, most int, err error)
}

// Found is a user or role that is there.
type Found struct {
	Kind            plan.Principal
	Name, ARN, Path string
	Created         time.Time // UTC
	Tags            map[string]string
	// Trust is who may assume a role: a policy document; empty for a user.
	Trust string
}

// Wanted is a user or role to make.
type Wanted struct {
	Name, Path string
	Tags       []label.Label
	Boundary   string // the ARN of the policy that bounds it; never empty
	Trust      string // of a role
}

// A Key is a new access key.
type Key struct {
	secret.Holder
	ID, Secret string
}

// A KeyInfo is what IAM tells of a key later.
type KeyInfo struct {
	ID     string
	Active bool
}

// An Attachment hangs on a principal. Its name says what it is.
type Attachment struct {
	Name   string
	Detach func(ctx context.Context) error
}

// A Prover tries a new access key.
type Prover interface {
	// Prove makes one call with the key: the plan's proof, or one that asks only whose the key
	// is. It reports whether AWS did it; said is the reason for logs, a code of AWS.
	Prove(ctx context.Context, key Key, proof *plan.Proof, values map[string]string) (ok bool, said string, err error)
}
