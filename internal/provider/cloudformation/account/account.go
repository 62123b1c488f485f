// Package account says what an AWS account must hold so that a broker can make services in it
// through CloudFormation, and what the broker may do there. It provides these resources and
// policies as plain data, for a stack, a command or the template of another account to apply; it
// calls nothing.
package account

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Here is the place in which a CloudFormation template is used, written as pseudo parameters. All
// texts of this package contain them until Fill or the template puts the actual place in.
var Here = plan.Location{Partition: "${AWS::Partition}", Account: "${AWS::AccountId}", Region: "${AWS::Region}"}

// Options say how an account is to be prepared.
type Options struct {
	// Emulated leaves out conditions that emulators of AWS do not know, and would deny for: on the
	// boundary of principals, on which service gets a role, and on the role of a stack. Never set
	// it on AWS.
	Emulated bool
	// Trust is set for an account that is not the broker's own.
	Trust *Trust
	// Access holds the ARNs of the roles that the broker assumes in other accounts.
	Access []string
	// Regions are further regions of the same account in which the broker works.
	Regions []string
}

// OptionsFor returns the options of the broker's own account, for work in these targets.
func OptionsFor(t plan.Targets) (o Options) {
	for _, one := range t.Targets {
		if one.Role != "" {
			o.Access = append(o.Access, one.Role)
		} else if one.Region != "" {
			o.Regions = append(o.Regions, one.Region)
		}
	}
	o.Access, o.Regions = sorted.Set(o.Access), sorted.Set(o.Regions)
	return o
}

// Trust says whose broker may work in an account.
type Trust struct {
	// Principals are the ARNs of the roles or users that may assume the access role.
	Principals []string
	// ExternalID is the external id that they must give. Without it, a user who may ask the broker
	// for things in an account of their own could name another account.
	ExternalID string
}

// A mapping is a JSON object.
type mapping = map[string]any

// A Resource is a resource of a template. It is retained: the instances that need it may outlive an
// offering, and the stack itself.
type Resource struct {
	Type                string
	DeletionPolicy      string
	UpdateReplacePolicy string
	Properties          mapping
}

// kept returns a resource that stays when its template or its stack drops it, except if its
// creation fails: its name is fixed, and what a failed attempt left behind would fail every later
// one.
func kept(kind string, properties mapping) Resource {
	return Resource{
		Type: kind, DeletionPolicy: "RetainExceptOnCreate", UpdateReplacePolicy: "Retain",
		Properties: render(object(properties)).(mapping),
	}
}

// These are the sizes that IAM takes: mostInside for a role's inline policies, mostPolicy for a
// managed policy. White space does not count.
const (
	mostInside = 10_240
	mostPolicy = 6_144
)

// Resources returns the resources that an account must hold in the region of the template, by their
// logical ids: a bucket for templates; for each offering, the role that CloudFormation uses and the
// boundary of its bindings' principals; and with Options.Trust, the role that the broker assumes.
func Resources(scope plan.Scope, offerings []Offering, o Options) (map[string]Resource, error) {
	all := templates(scope)
	for _, offering := range offerings {
		role, err1 := serviceRole(scope, offering)
		boundary, err2 := boundary(scope, offering)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, fmt.Errorf("offering %s: %w", offering.Name, err)
		}
		all["ServiceRole"+letters(offering.Name)], all["Boundary"+letters(offering.Name)] = role, boundary
	}
	if o.Trust != nil {
		role, err := access(scope, o)
		if err != nil {
			return nil, err
		}
		all["AccessRole"] = role
	}
	return all, nil
}

// letters returns a part of a logical id for any name. No two names get the same.
func letters(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, name)
	return plain + plan.Digest([]byte(name))[:8]
}

// templates returns the bucket that holds templates by their digests. It keeps versions, so that no
// template is replaced unseen.
func templates(scope plan.Scope) map[string]Resource {
	name := scope.Bucket(Here.Account, Here.Region)
	insecure := where(deny("OnlyTLS", bucketARNs(scope), "s3:*"), "Bool", "aws:SecureTransport", "false")
	return map[string]Resource{
		"Templates": kept("AWS::S3::Bucket", mapping{
			"BucketName": name,
			"BucketEncryption": mapping{"ServerSideEncryptionConfiguration": []any{
				mapping{"ServerSideEncryptionByDefault": mapping{"SSEAlgorithm": "AES256"}},
			}},
			"OwnershipControls": mapping{"Rules": []any{mapping{"ObjectOwnership": "BucketOwnerEnforced"}}},
			"PublicAccessBlockConfiguration": mapping{
				"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
			},
			"VersioningConfiguration": mapping{"Status": "Enabled"},
		}),
		"TemplatesPolicy": kept("AWS::S3::BucketPolicy", mapping{
			"Bucket": name, "PolicyDocument": about("*", insecure),
		}),
	}
}

// about returns a policy with one statement about a principal, in the form that buckets and roles
// have.
func about(principal any, s iampolicy.Statement) mapping {
	statement := object(s)
	statement["Principal"] = principal
	return mapping{"Version": iampolicy.Version, "Statement": []any{statement}}
}

// role returns a role that an operator makes, with the policy in it.
func role(scope plan.Scope, name, description string, trust mapping, policyName string, policy mapping) Resource {
	return kept("AWS::IAM::Role", mapping{
		"RoleName": name, "Path": scope.FixedPath(), "Description": description, "AssumeRolePolicyDocument": trust,
		"Policies": []any{mapping{"PolicyName": policyName, "PolicyDocument": policy}},
	})
}

// object returns a value as a JSON object.
func object(value any) mapping {
	var out mapping
	raw, err := json.Marshal(value)
	if err = cmp.Or(err, json.Unmarshal(raw, &out)); err != nil {
		panic(err) // texts and lists of texts always encode
	}
	return out
}

// render turns texts with pseudo parameters into functions of a template.
func render(value any) any {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "${AWS::") {
			// Sub would also replace the variables of IAM policies, so these are escaped.
			return mapping{"Fn::Sub": strings.ReplaceAll(strings.ReplaceAll(v, "${", "${!"), "${!AWS::", "${AWS::")}
		}
	case mapping:
		for key, part := range v {
			v[key] = render(part)
		}
	case []any:
		for i, part := range v {
			v[i] = render(part)
		}
	}
	return value
}

// Fill puts a place into the texts of statements, instead of Here.
func Fill(all []iampolicy.Statement, p plan.Location) []iampolicy.Statement {
	place := strings.NewReplacer(Here.Partition, p.Partition, Here.Account, p.Account, Here.Region, p.Region)
	out := make([]iampolicy.Statement, len(all))
	for i, s := range all {
		out[i] = s.Map(place.Replace)
	}
	return out
}

// longest is a place with names as long as they get.
var longest = plan.Location{Partition: "aws-us-gov", Account: "111122223333", Region: "ap-southeast-99"}

// document returns a policy for a template. A policy of more than most bytes is an error.
func document(all []iampolicy.Statement, most int) (mapping, error) {
	if size := len(textOf(Fill(all, longest))); size > most {
		return nil,
			fmt.Errorf("its policy has %d bytes, and IAM takes %d: put actions on the same resources into one statement, "+
				"or make two offerings of it", size, most)
	}
	return object(policyOf(all)), nil
}

// access returns the role that a broker assumes in an account that is not its own.
func access(scope plan.Scope, o Options) (Resource, error) {
	if len(o.Trust.Principals) == 0 || o.Trust.ExternalID == "" {
		return Resource{}, fmt.Errorf("the access role needs who may take it, and an external id")
	}
	o.Access, o.Regions = nil, nil // the role leads no further
	policy, err := document(Rights(scope, o), mostInside)
	if err != nil {
		return Resource{}, fmt.Errorf("the access role: %w", err)
	}
	taking := where(allow("", nil, "sts:AssumeRole"), "StringEquals", "sts:ExternalId", o.Trust.ExternalID)
	return role(scope, scope.Access(Here.Region), "What a service broker of another account does here",
		about(mapping{"AWS": o.Trust.Principals}, taking), "Broker", policy), nil
}

// Template returns a complete CloudFormation template with these resources.
func Template(scope plan.Scope, offerings []Offering, o Options) ([]byte, error) {
	resources, err := Resources(scope, offerings, o)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(mapping{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "What a service broker needs in this account and region to make AWS services",
		"Resources":                resources,
	}, "", "  ")
}
