// Package plan holds the settings of a plan of a CloudFormation offering, and the names of the
// things that are made for it. The compiler of offerings, the provider, and the preparation of
// accounts share it. It reads no files and calls nothing.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/longshore/longshore/internal/base/provider/check"
)

// Format is the version of the form in which Settings are written.
const Format = 1

// Settings are the settings of a plan as they were when an instance was made or last updated: the
// snapshot that instances record. They hold no addresses, no secrets, and nothing that depends on
// an account.
type Settings struct {
	check.Change
	Format int `json:"format"`
	// Offering is the offering's name: the service role and the boundary belong to the offering.
	Offering string `json:"offering"`
	// Template is the digest of the template, which is a file of the compiled catalog; empty for a
	// plan with an existing resource.
	Template string `json:"template,omitempty"`
	// Permissions is the digest of the permissions of the service role.
	Permissions string `json:"permissions,omitempty"`
	// Resources are the types of the template's resources, by their logical ids.
	Resources map[string]string `json:"resources,omitempty"`
	// Parameters say where the values of the template's parameters come from, by their names.
	Parameters map[string]Source `json:"parameters,omitempty"`
	// Credentials are the members of a grant besides the principal's own. Their texts name the
	// stack's outputs and the Values as ${NAME}.
	Credentials map[string]string `json:"credentials,omitempty"`
	// Policy is a policy document that says what a binding may do. Its texts may contain ${NAME} as
	// well.
	Policy json.RawMessage `json:"policy,omitempty"`
	// Principal is what each binding gets.
	Principal Principal `json:"principal,omitempty"`
	// Assume names who may assume a binding's role: account ids and ARNs.
	Assume []string `json:"assume,omitempty"`
	// Proof is a call that the policy allows, to prove a key; nil for a call that only asks whose
	// the key is.
	Proof *Proof `json:"proof,omitempty"`
	// OnDelete is the rule for the contents of the instance.
	OnDelete Rule `json:"on_delete,omitempty"`
	// Existing names a resource that exists already.
	Existing *Existing `json:"existing,omitempty"`
	// Minutes is how long a stack operation may take; 0 for DefaultMinutes.
	Minutes int `json:"minutes,omitempty"`
}

// DefaultMinutes is how long a stack operation may take if the plan does not say: less than the
// time that an operation has.
const DefaultMinutes = 50

// MaxValue is the length of the longest value that CloudFormation takes for a parameter, in bytes.
const MaxValue = 4096

// A Principal is the kind of principal that a binding gets.
type Principal string

// The kinds of principals.
const (
	User Principal = "user" // an IAM user with an access key
	Role Principal = "role" // an IAM role that others may assume; it has no secret
)

// A Rule says what a deletion does with the contents of an instance.
type Rule string

// These are the rules of plans. Refuse looks at the contents before anything is touched.
const (
	Empty  Rule = "empty"  // the contents are removed
	Retain Rule = "retain" // the resource outlives its stack, with tags that say so
	Refuse Rule = "refuse" // the deletion fails, and the instance stays usable
)

// A Source gives the value of a template's parameter: the first one that is there of the user's
// parameter, the context, the target, and Value.
type Source struct {
	// Parameter is the name of the user's parameter.
	Parameter string `json:"parameter,omitempty"`
	// Context is organization, space or instance_name.
	Context string `json:"context,omitempty"`
	// Target is vpc, subnets or cidrs, a property of the instance's target.
	Target string `json:"target,omitempty"`
	// Value is the value that the operator fixed, or the default; nil for the template's default.
	Value *string `json:"value,omitempty"`
	// Secret is set for a parameter that CloudFormation does not show (NoEcho).
	Secret bool `json:"secret,omitempty"`
}

// An Existing finds a resource that the broker does not make: by an export of CloudFormation, or by
// a tag. The broker never changes or removes it.
type Existing struct {
	// Exports are the names of exports, by the names of their Values.
	Exports map[string]string `json:"exports,omitempty"`
	// Tag and Type find the one resource with the tag NAME=VALUE and the type, such as s3:bucket or
	// sqs:queue. Its ARN and the last part of the ARN become the values Arn and Name.
	Tag  string `json:"tag,omitempty"`
	Type string `json:"type,omitempty"`
}

// A Proof is one signed request. Its texts may contain ${NAME}, as Credentials do. An answer of 2xx
// proves the key; after any other answer, the request is repeated.
type Proof struct {
	// Service is the name of the service in signatures and host names, such as sqs.
	Service string            `json:"service"`
	Method  string            `json:"method,omitempty"` // empty for POST
	Path    string            `json:"path,omitempty"`   // with its query; empty for /
	Headers map[string]string `json:"headers,omitempty"`
	// Body is JSON if it begins with a brace, and a form otherwise. Values are escaped accordingly.
	Body string `json:"body,omitempty"`
}

// These are the names of the Values that the texts of every template may use, besides its outputs.
const (
	ValueRegion    = "AWS::Region"
	ValueAccount   = "AWS::AccountId"
	ValuePartition = "AWS::Partition"
	ValueSuffix    = "AWS::URLSuffix"
	// ValuePrefix begins the names of all things that the broker makes.
	ValuePrefix = "Prefix"
	// ValueSpacePrefix begins the names of all things that the broker makes in the instance's
	// space. An existing resource belongs to no space.
	ValueSpacePrefix = "SpacePrefix"
)

// Parse reads a snapshot. A snapshot of a later program is a temporary error: a deployment is under
// way.
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

// Digest returns the SHA-256 of a content in hex: the name that a file has in the compiled catalog.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
