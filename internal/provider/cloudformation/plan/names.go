package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Scope begins the names of all things that one broker makes in AWS accounts: its rights end
// where other names begin.
type Scope string

// Short returns a hash in letters and digits that every name may have.
func Short(text string, letters int) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:letters])
}

// ScopeOf returns the scope of a broker: of is the name of its stack, or the identity of a broker
// that has none.
func ScopeOf(of string) Scope { return Scope("longshore-" + Short(of, 8)) }

// Prefix begins the names of all things that a broker makes.
func (s Scope) Prefix() string { return string(s) + "-" }

// Path is the path of the IAM users and roles of the broker's bindings.
func (s Scope) Path() string { return "/" + strings.Replace(string(s), "-", "/", 1) + "/" }

// FixedPath is the path of the service roles, the boundaries and the access role that an operator
// makes for the broker. Hazard: it must not lie below Path. A star in the pattern of a policy
// crosses slashes, and a caller who may make roles below Path could choose a path that leads into
// the one reserved for operators.
func (s Scope) FixedPath() string { return strings.TrimSuffix(s.Path(), "/") + "-fixed/" }

// Stacks begins the names of the stacks of all instances.
func (s Scope) Stacks() string { return string(s) + "-i-" }

// SpacePrefix begins the names of the stacks of all instances of a space.
func (s Scope) SpacePrefix(space string) string { return s.Stacks() + space + "-" }

// Stack returns the name of an instance's stack, which has 56 letters.
func (s Scope) Stack(in provider.Tags, space string) string {
	return s.SpacePrefix(space) + provider.Hash(in.OfInstance())
}

// SpaceIn returns the space in the name of an instance's stack. It reports false if the name is not
// the one of the instance's stack in any space.
func (s Scope) SpaceIn(name string, in provider.Tags) (space string, is bool) {
	if rest := strings.TrimPrefix(name, s.Stacks()); len(rest) > spaceLetters {
		space = rest[:spaceLetters]
	}
	return space, name == s.Stack(in, space)
}

// spaceLetters is how many letters of a stack's name stand for a space.
const spaceLetters = 8

// SpaceOf returns letters that stand for the space in which an instance is ordered, among the
// spaces of all platforms and organizations. An instance without a space gets letters of its own,
// which it shares with no other.
//
// Hazard: spaces may be renamed and instances moved later, but stacks cannot. The letters are
// recorded before a stack is made, and never derived again.
//
// Hazard: a user who may choose the name of a space could try names until one has the same letters
// as a foreign space. The hash contains the broker's identity, which is random and which users
// never see, so nobody can.
func SpaceOf(in provider.Instance) string {
	of := []string{in.Broker, in.Platform, in.Place.Organization, in.Place.Space}
	if in.Place.Space == "" {
		of = []string{provider.Hash(provider.TagsOf(in))}
	}
	return Short(fmt.Sprintf("%q", of), spaceLetters)
}

// InstancePath is the path of the principals of all bindings of an instance.
func (s Scope) InstancePath(t provider.Tags) string {
	return s.Path() + provider.Hash(t.OfInstance()) + "/"
}

// BindingPath is the path of the principals of one binding, below InstancePath.
func (s Scope) BindingPath(t provider.Tags) string { return s.InstancePath(t) + provider.Hash(t) + "/" }

// Binding returns the name of a binding's user or role. It has 46 letters; IAM takes 64.
func (s Scope) Binding(t provider.Tags) string { return provider.Name(string(s), "b", t) }

// Names returns the name of a binding's user or role. For an instance it returns none: the name of
// a stack contains the space, which tags do not have.
func (s Scope) Names(t provider.Tags) []string {
	if t.Binding == "" {
		return nil
	}
	return []string{s.Binding(t)}
}

// nameOf returns the part of a name that stands for an offering: the offering's own name if it is
// short.
func nameOf(offering string) string {
	const most = 20
	if len(offering) <= most {
		return offering
	}
	return offering[:most-9] + "-" + Short(offering, 8)
}

// ServiceRole returns the name of the role that CloudFormation uses for an offering in a region:
// IAM names are shared by all regions. With a region of 14 letters, the name has 56.
func (s Scope) ServiceRole(offering, region string) string {
	return string(s) + "-s-" + nameOf(offering) + "-" + region
}

// Boundary returns the name of the policy that bounds the principals of an offering's bindings.
func (s Scope) Boundary(offering, region string) string {
	return string(s) + "-p-" + nameOf(offering) + "-" + region
}

// Access returns the name of the role that a broker assumes in another account.
func (s Scope) Access(region string) string { return string(s) + "-a-" + region }

// Bucket returns the name of the bucket that holds templates by their digests.
func (s Scope) Bucket(account, region string) string { return string(s) + "-" + account + "-" + region }

// A Location is an account and a region, as ARNs name them.
type Location struct{ Partition, Account, Region string }

// Suffix returns the end of the host names of AWS at the location.
func (p Location) Suffix() string {
	if p.Partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// Console returns the host of the AWS console for the location.
func (p Location) Console() string {
	switch p.Partition {
	case "aws-cn":
		return p.Region + ".console.amazonaws.cn"
	case "aws-us-gov":
		return p.Region + ".console.amazonaws-us-gov.com"
	}
	return p.Region + ".console.aws.amazon.com"
}

// ObjectURL returns the URL at which CloudFormation reads an object of a bucket. endpoint is that
// of an emulator, which has all services at one address; nil on AWS.
func (p Location) ObjectURL(endpoint *string, bucket, key string) string {
	if endpoint != nil {
		return strings.TrimSuffix(*endpoint, "/") + "/" + bucket + "/" + key
	}
	return "https://" + bucket + ".s3." + p.Region + "." + p.Suffix() + "/" + key
}

// ARN returns the ARN of a resource at the location. Those of IAM name no region, and those of S3 no
// account either.
func (p Location) ARN(service, resource string) string {
	switch service {
	case "iam":
		p.Region = ""
	case "s3":
		p.Account, p.Region = "", ""
	}
	return strings.Join([]string{"arn", p.Partition, service, p.Region, p.Account, resource}, ":")
}

// ServiceRoleARN returns the ARN of ServiceRole.
func (s Scope) ServiceRoleARN(p Location, offering string) string {
	return p.ARN("iam", "role"+s.FixedPath()+s.ServiceRole(offering, p.Region))
}

// BoundaryARN returns the ARN of Boundary.
func (s Scope) BoundaryARN(p Location, offering string) string {
	return p.ARN("iam", "policy"+s.FixedPath()+s.Boundary(offering, p.Region))
}

// AccessARN returns the ARN of Access.
func (s Scope) AccessARN(p Location) string {
	return p.ARN("iam", "role"+s.FixedPath()+s.Access(p.Region))
}
