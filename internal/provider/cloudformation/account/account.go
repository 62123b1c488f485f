// Package account says what an AWS account must hold so that a broker can make services in it
// through CloudFormation, and what the broker may do there. It provides these resources and
// policies as plain data, for a stack, a command or the template of another account to apply; it
// calls nothing.
package account

import (
	"cmp"
	_ "embed" // for the resources
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

// A Resource is a resource of a template. It is retained, since the instances that need it may
// outlive an offering, and the stack itself; except if its creation fails: its name is fixed, and
// what a failed attempt left behind would fail every later one.
type Resource struct {
	Type                string
	DeletionPolicy      string
	UpdateReplacePolicy string
	Properties          mapping
}

// written holds the resources of an account, in which ${NAME} stands for what Resources fills in. The
// bucket holds templates by their digests, and keeps versions, so that no template is replaced unseen. The
// trust policy of a service role asks for the account only if it is there: CloudFormation does not
// promise to send the account on whose behalf it asks.
//
//go:embed resources.json
var written string

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
	all := map[string]Resource{
		"Templates": resource(scope, "Templates", nil), "TemplatesPolicy": resource(scope, "TemplatesPolicy", nil),
	}
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

// resource returns the written resource of this name. Each value takes the place of a whole text.
func resource(scope plan.Scope, name string, values mapping) Resource {
	var all map[string]json.RawMessage
	_ = json.Unmarshal([]byte(written), &all) // read refuses what this leaves empty
	var r Resource
	read(string(all[name]), scope, values, &r)
	render(r.Properties)
	return r
}

// read reads JSON with the names and paths of the scope in its texts, and with values in the place of
// those texts that consist of ${NAME} alone. It refuses members that it does not know: one could be
// a condition.
func read(text string, scope plan.Scope, values mapping, into any) {
	pairs := []string{"${Scope}", string(scope), "${LabelScope}", plan.LabelScope,
		"${Path}", scope.Path(), "${FixedPath}", scope.FixedPath()}
	for name, value := range values {
		raw, _ := json.Marshal(value) // texts and lists of texts always encode
		pairs = append(pairs, `"${`+name+`}"`, string(raw))
	}
	from := json.NewDecoder(strings.NewReader(strings.NewReplacer(pairs...).Replace(prefixed(scope)(text))))
	from.DisallowUnknownFields()
	if err := from.Decode(into); err != nil {
		panic(err) // this package has written it
	}
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

// withPolicy returns the written resource of this name with a policy in it. It fails if the policy is
// longer than IAM takes; the error calls the resource by what.
func withPolicy(scope plan.Scope, name, what string, policy []iampolicy.Statement, values mapping) (Resource, error) {
	values["Policy"] = policyOf(policy)
	r, most := resource(scope, name, values), mostInside
	if r.Type == "AWS::IAM::ManagedPolicy" {
		most = mostPolicy
	}
	if size := len(textOf(Fill(policy, longest))); size > most {
		return r, fmt.Errorf("%s: its policy has %d bytes, and IAM takes %d: put actions on the same resources into one "+
			"statement, or make two offerings of it", what, size, most)
	}
	return r, nil
}

// access returns the role that a broker assumes in an account that is not its own.
func access(scope plan.Scope, o Options) (Resource, error) {
	if len(o.Trust.Principals) == 0 || o.Trust.ExternalID == "" {
		return Resource{}, fmt.Errorf("the access role needs who may take it, and an external id")
	}
	o.Access, o.Regions = nil, nil // the role leads no further
	return withPolicy(scope, "AccessRole", "the access role", Rights(scope, o), mapping{
		"Name": scope.Access(Here.Region), "Principals": o.Trust.Principals, "ExternalID": o.Trust.ExternalID,
	})
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
