// Package plan holds the settings of a plan of a CloudFormation offering, and the names of the
// things that are made for it. The compiler of offerings, the provider, and the preparation of
// accounts share it: it reads no files and calls nothing.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/longshore/longshore/internal/base/provider/check"
)

// Format is the version of what Settings are written as.
const Format = 1

// Settings are those of a plan as they were when an instance was made or last updated: the
// snapshot that instances record. They hold no addresses, no secrets, and nothing
// of an account.
type Settings struct {
	check.Change
	Format int `json:"format"`
	// Offering is its name: the service role and the boundary are the offering's.
	Offering string `json:"offering"`
	// Template is the digest of the template, which is a file of the compiled
	// catalog; empty for a plan of something that exists.
	Template string `json:"template,omitempty"`
	// Permissions is the digest of what the service role may do.
	Permissions string `json:"permissions,omitempty"`
	// Resources are the types of the template's resources, by their logical ids.
	Resources map[string]string `json:"resources,omitempty"`
	// Parameters say where the values of the template's parameters are from, by
	// their names.
	Parameters map[string]Source `json:"parameters,omitempty"`
	// Credentials are the members of a grant beside the principal's own: texts with
	// ${NAME} for the stack's outputs and for the Values.
	Credentials map[string]string `json:"credentials,omitempty"`
	// Policy is what a binding may do: a policy document with such texts in it.
	Policy json.RawMessage `json:"policy,omitempty"`
	// Principal is what each binding gets.
	Principal Principal `json:"principal,omitempty"`
	// Assume names who may assume a binding's role: account ids and ARNs.
	Assume []string `json:"assume,omitempty"`
	// Proof is a call that the policy allows, which proves a key; nil for asking
	// only whose the key is.
	Proof *Proof `json:"proof,omitempty"`
	// OnDelete is the rule for the contents of the instance.
	OnDelete Rule `json:"on_delete,omitempty"`
	// Existing names a resource that is there already.
	Existing *Existing `json:"existing,omitempty"`
	// Minutes is how long a stack operation may take; 0 for DefaultMinutes.
	Minutes int `json:"minutes,omitempty"`
}

// DefaultMinutes is how long a stack operation may take where a plan says nothing: less
// than the time that an operation has.
const DefaultMinutes = 50

// MaxValue is the longest value of a parameter that CloudFormation takes, in bytes.
const MaxValue = 4096

// A Principal is what a binding gets of its own.
type Principal string

// The kinds of principals.
const (
	User Principal = "user" // an IAM user with an access key
	Role Principal = "role" // an IAM role that others may assume; it has no secret
)

// A Rule says what a deletion does with the contents of an instance.
type Rule string

// The rules of plans. Refuse looks before anything is touched.
const (
	Empty  Rule = "empty"  // it is removed
	Retain Rule = "retain" // the resource outlives its stack, with tags that say so
	Refuse Rule = "refuse" // the deletion fails, and the instance stays usable
)

// A Source gives the value of a template's parameter: the first one that is given of the user's
// parameter, the context, the target, and Value.
type Source struct {
	// Parameter is the user's, by its name.
	Parameter string `json:"parameter,omitempty"`
	// Context is one of organization, space and instance_name.
	Context string `json:"context,omitempty"`
	// Target is one of vpc, subnets and cidrs of the instance's target.
	Target string `json:"target,omitempty"`
	// Value is what the operator fixed, or the default; nil for the template's own.
	Value *string `json:"value,omitempty"`
	// Secret is set for a parameter that CloudFormation does not show (NoEcho).
	Secret bool `json:"secret,omitempty"`
}

// An Existing finds a resource that the broker does not make: by an export of
// CloudFormation, or by a tag. It is never changed or removed.
type Existing struct {
	// Exports are the names of exports, by the names that Values give them.
	Exports map[string]string `json:"exports,omitempty"`
	// Tag and Type find one resource by its tag NAME=VALUE and its type, such as
	// s3:bucket or sqs:queue; its ARN and last part become the values Arn and Name.
	Tag  string `json:"tag,omitempty"`
	Type string `json:"type,omitempty"`
}

// A Proof is one signed request. Texts may have ${NAME}, as Credentials have. An
// answer of 2xx proves the key; any other is asked again.
type Proof struct {
	// Service is the name that signatures and host names have, such as sqs.
	Service string            `json:"service"`
	Method  string            `json:"method,omitempty"` // POST unless given
	Path    string            `json:"path,omitempty"`   // with its query; / unless given
	Headers map[string]string `json:"headers,omitempty"`
	// Body is JSON if it begins with a brace, and a form otherwise: what is filled in is
	// escaped so.
	Body string `json:"body,omitempty"`
}

// The names of Values that every template's texts may use beside its outputs.
const (
	ValueRegion    = "AWS::Region"
	ValueAccount   = "AWS::AccountId"
	ValuePartition = "AWS::Partition"
	ValueSuffix    = "AWS::URLSuffix"
	// ValuePrefix begins the names of all that the broker makes.
	ValuePrefix = "Prefix"
	// ValueSpacePrefix begins the names of all that the broker makes in the instance's space.
	// An existing resource is of no space.
	ValueSpacePrefix = "SpacePrefix"
)

// Parse reads a snapshot. That of a later program is an error that passes: a
// deployment is under way.
func Parse(snapshot json.RawMessage) (Settings, error) {
	var m Settings
	if err := json.Unmarshal(snapshot, &m); err != nil {
		return m, fmt.Errorf("the snapshot of the plan cannot be read: %w", err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("the snapshot of the plan has format %d, and this program knows %d", m.Format, Format)
	}
	return m, nil
}

// Digest names the content of a file of the compiled catalog.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
