package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Scope begins the names of all that one broker makes in AWS accounts: its rights end where
// other names begin.
type Scope string

// lower is base32 in the letters that every name may have.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func short(text string, letters int) string {
	sum := sha256.Sum256([]byte(text))
	return lower.EncodeToString(sum[:])[:letters]
}

// ScopeOf is the scope of a broker, of the name of its stack, or of the identity of a broker
// without one.
func ScopeOf(of string) Scope { return Scope("longshore-" + short(of, 8)) }

// Prefix begins the names of all that a broker makes.
func (s Scope) Prefix() string { return string(s) + "-" }

// Path is that of the IAM users and roles of its bindings.
func (s Scope) Path() string { return "/" + strings.Replace(string(s), "-", "/", 1) + "/" }

// FixedPath is the path of what an operator makes for it: service roles, boundaries, the role
// in another account. Hazard: it must not lie below Path. A star in the pattern of a policy
// crosses slashes, and a caller who may make roles below Path could choose a path that leads
// into those that only an operator makes.
func (s Scope) FixedPath() string { return strings.TrimSuffix(s.Path(), "/") + "-fixed/" }

// Stacks begins the names of the stacks of all instances.
func (s Scope) Stacks() string { return string(s) + "-i-" }

// SpacePrefix begins the names of the stacks of all instances of a space.
func (s Scope) SpacePrefix(space string) string { return s.Stacks() + space + "-" }

// Stack is the name of an instance's stack, which has 56 letters.
func (s Scope) Stack(in provider.Tags, space string) string {
	return s.SpacePrefix(space) + hashOf(in.OfInstance())
}

// SpaceIn tells the space in the name of an instance's stack. False says that the name is
// not that of its stack in any space.
func (s Scope) SpaceIn(name string, in provider.Tags) (space string, is bool) {
	if rest := strings.TrimPrefix(name, s.Stacks()); len(rest) > spaceLetters {
		space = rest[:spaceLetters]
	}
	return space, name == s.Stack(in, space)
}

// spaceLetters is how many letters of a stack's name stand for a space.
const spaceLetters = 8

// SpaceOf stands for the space that an instance is ordered in, among those of all
// platforms and organizations. Without a space, the instance has letters of its own: it
// shares them with nothing else.
//
// Hazard: spaces may be renamed and instances moved later, and stacks cannot. The letters
// are recorded before a stack is made, and never derived again.
//
// Hazard: a user who may choose the name of a space could try names until one has the
// letters of somebody else's. With the broker's identity in the hash, which is random and
// which users never see, nobody can.
func SpaceOf(in provider.Instance) string {
	of := []string{in.Broker, in.Platform, in.Place.Organization, in.Place.Space}
	if in.Place.Space == "" {
		of = []string{hashOf(provider.TagsOf(in))}
	}
	return short(fmt.Sprintf("%q", of), spaceLetters)
}

// InstancePath holds the principals of all bindings of an instance, and
// BindingPath those of one.
func (s Scope) InstancePath(t provider.Tags) string { return s.Path() + hashOf(t.OfInstance()) + "/" }

// BindingPath is below InstancePath.
func (s Scope) BindingPath(t provider.Tags) string { return s.InstancePath(t) + hashOf(t) + "/" }

func hashOf(t provider.Tags) string {
	name := provider.Name("x", "x", t)
	return name[len("x-x-"):]
}

// Binding is the name of a binding's user or role. It has 46 letters, of the 64 that IAM
// takes.
func (s Scope) Binding(t provider.Tags) string { return provider.Name(string(s), "b", t) }

// Names is the name of a binding's user or role. Tags do not tell that of a stack, which
// has the space in it.
func (s Scope) Names(t provider.Tags) []string {
	if t.Binding == "" {
		return nil
	}
	return []string{s.Binding(t)}
}

// nameOf is part of a name for an offering: its own where that is short.
func nameOf(offering string) string {
	const most = 20
	if len(offering) <= most {
		return offering
	}
	return offering[:most-9] + "-" + short(offering, 8)
}

// ServiceRole is the name of the role by which CloudFormation works for an offering
// in a region: IAM's names are of all regions. With a region of 14 letters it has 56.
func (s Scope) ServiceRole(offering, region string) string {
	return string(s) + "-s-" + nameOf(offering) + "-" + region
}

// Boundary is the name of the policy that bounds the principals of an offering's
// bindings.
func (s Scope) Boundary(offering, region string) string {
	return string(s) + "-p-" + nameOf(offering) + "-" + region
}

// Access is the name of the role that a broker takes in another account.
func (s Scope) Access(region string) string { return string(s) + "-a-" + region }

// Bucket is the name of the bucket that holds templates by their digests.
func (s Scope) Bucket(account, region string) string { return string(s) + "-" + account + "-" + region }

// A Location is an account and region, as ARNs name them.
type Location struct{ Partition, Account, Region string }

// Suffix ends the names of hosts there.
func (p Location) Suffix() string {
	if p.Partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// Console is the host of the console that shows what is there.
func (p Location) Console() string {
	switch p.Partition {
	case "aws-cn":
		return p.Region + ".console.amazonaws.cn"
	case "aws-us-gov":
		return p.Region + ".console.amazonaws-us-gov.com"
	}
	return p.Region + ".console.aws.amazon.com"
}

// ObjectURL is where CloudFormation reads an object of a bucket. An emulator, whose
// endpoint is given, has all services at one address.
func (p Location) ObjectURL(endpoint *string, bucket, key string) string {
	if endpoint != nil {
		return strings.TrimSuffix(*endpoint, "/") + "/" + bucket + "/" + key
	}
	return "https://" + bucket + ".s3." + p.Region + "." + p.Suffix() + "/" + key
}

func (s Scope) fixed(p Location, kind, name string) string {
	return "arn:" + p.Partition + ":iam::" + p.Account + ":" + kind + s.FixedPath() + name
}

// ServiceRoleARN is that of ServiceRole.
func (s Scope) ServiceRoleARN(p Location, offering string) string {
	return s.fixed(p, "role", s.ServiceRole(offering, p.Region))
}

// BoundaryARN is that of Boundary.
func (s Scope) BoundaryARN(p Location, offering string) string {
	return s.fixed(p, "policy", s.Boundary(offering, p.Region))
}

// AccessARN is that of Access.
func (s Scope) AccessARN(p Location) string { return s.fixed(p, "role", s.Access(p.Region)) }
