package servicestest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/servicestest"
)

var update = flag.Bool("update", false, "write docs/catalog.md")

const page = "../../../docs/catalog.md"

// shipped are the offerings of AWS services, by their names.
func shipped(t *testing.T) (*catalog.Catalog, map[string]catalog.Offering) {
	t.Helper()
	c, err := offeringfiles.Load("")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]catalog.Offering{}
	for _, o := range c.Offerings() {
		if o.Provider == "cloudformation" {
			all[o.Name] = o
		}
	}
	return c, all
}

// The page says what ships, and where it was tried.
func TestPageIsCurrent(t *testing.T) {
	want := write(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/catalog.md is not what `go test ./internal/test/servicestest -update` makes (-want +got):\n%s", diff)
	}
}

func write(t *testing.T) string {
	t.Helper()
	_, all := shipped(t)
	var b strings.Builder
	b.WriteString(`# AWS services that ship

This page is made by ` + "`go test ./internal/test/servicestest -update`" + `, and a test keeps it true. How they are offered
stands in [cloudformation.md](cloudformation.md), and how another one is added. Prices are of us-east-1, from AWS's price
lists; they change.

None of these has been made on a real AWS account yet. Below each plan stands where it was made and used:

- **MiniStack, one process**: a test of ` + "`make test`" + ` (internal/test/e2e TestServices) has the built program make two
  instances on MiniStack 1.5.33, which does what policies say: one without parameters, which an update then gives all that it
  takes, and one with all that there are. The account shows each parameter, but for those that are named. Each binding's own
  credentials open its instance, and nothing else, and nothing after the unbind. Both are deleted, and the account is found as
  it was.
- **MiniStack, deployed**: a test of ` + "`make test`" + ` (localstack TestServices) has the deployed broker make one
  instance, in the functions' own roles: it is used with what was handed out, refused after the unbind, deleted, and nothing
  of it is left.
- **LocalStack, deployed**: the same test, run by hand on LocalStack 4.14.0 without Docker, which refuses nothing: seven in
  one run, on an overloaded machine that answered a bind of kinesis with a 500, and kinesis by itself. None of their resources
  was one that LocalStack only pretends to make.

What no test shows is left to AWS's word. For all of them that is [also](aws.md#what-is-proved-where) whether the rights in
permissions.json are enough, since no emulator has CloudFormation act by its service role; how long things take, throttling,
quotas and bills.

The credentials of each have ` + "`access_key_id`, `secret_access_key` and `region`" + ` beside those of the table.

| offering | credentials | shown by no test |
| --- | --- | --- |
`)
	for _, s := range servicestest.Services() {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s |\n", s.Offering, s.Offering, strings.Join(s.Credentials, "`, `"), s.Unproved)
	}
	for _, s := range servicestest.Services() {
		o, ok := all[s.Offering]
		if !ok {
			t.Fatalf("%s does not ship", s.Offering)
		}
		section(t, &b, o, s)
	}
	return b.String()
}

// rules says in words what becomes of what an instance holds.
var rules = map[plan.Rule]string{
	plan.Empty:  "what is in it is removed with it",
	plan.Retain: "the resource stays in the account, with tags that say so",
	plan.Refuse: "refused as long as something is in it",
}

// A shown is the metadata that platforms show.
type shown struct {
	LongDescription string
	Bullets         []string
}

func shownOf(t *testing.T, metadata json.RawMessage) (s shown) {
	t.Helper()
	if err := json.Unmarshal(metadata, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func section(t *testing.T, b *strings.Builder, o catalog.Offering, s servicestest.Service) {
	t.Helper()
	fmt.Fprintf(b, "\n## %s\n\n%s\n", o.Name, shownOf(t, o.Metadata).LongDescription)
	if o.PlanUpdateable != s.Moves {
		t.Errorf("a move of %s is tried: %v", o.Name, s.Moves)
	}
	for i, p := range o.Plans {
		m, err := plan.Parse(p.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(s.Plans) || s.Plans[i].Name != p.Name {
			t.Fatalf("nobody tries %s of %s", p.Name, s.Offering)
		}
		fmt.Fprintf(b, "\n### %s, plan %s\n\n%s.\n\n", o.Name, p.Name, p.Description)
		for _, bullet := range shownOf(t, p.Metadata).Bullets {
			fmt.Fprintf(b, "- %s\n", bullet)
		}
		kinds := slices.Compact(slices.Sorted(maps.Values(m.Resources)))
		fmt.Fprintf(b, "- Made of: `%s`\n- A deletion: %s\n", strings.Join(kinds, "`, `"), rules[m.OnDelete])
		tried(t, b, s, s.Plans[i], p, m)
		parameters(t, b, p)
	}
}

// tried says where a plan was made and used, and how. What is given and what is changed
// must be all that there is.
func tried(t *testing.T, b *strings.Builder, s servicestest.Service, tried servicestest.Plan, p catalog.Plan, m plan.Settings) {
	t.Helper()
	at := s.Offering + "/" + p.Name
	for given, schema := range map[string]*catalog.ParametersSchema{
		tried.Given: p.Schemas.ServiceInstance.Create, tried.Changed: p.Schemas.ServiceInstance.Update,
	} {
		var values map[string]any
		if err := json.Unmarshal([]byte(given), &values); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(members(t, schema))), slices.Sorted(maps.Keys(values))); diff != "" {
			t.Errorf("%s: there are -parameters, and it is tried with +those:\n%s", at, diff)
		}
	}
	if tried.OnDelete != m.OnDelete || tried.Role != (m.Principal == plan.Role) {
		t.Errorf("%s: it is tried as %q, role %v", at, tried.OnDelete, tried.Role)
	}
	where := "MiniStack, one process"
	if p.Name == s.Deployed().Name {
		where += "; MiniStack, deployed; LocalStack, deployed"
	}
	did := []string{tried.Shows}
	if s.OnlyTLS {
		did = append(did, "a call without TLS is refused")
	}
	if tried.Forbidden != nil {
		did = append(did, "it is refused "+tried.Forbids)
	}
	if s.Moves && p.Name == s.Plans[1].Name {
		did = append(did, "an instance of "+s.Plans[0].Name+" was moved to it, with a binding")
	}
	for _, name := range tried.Unseen {
		did = append(did, "MiniStack does not show `"+name+"`")
	}
	for _, name := range tried.Unchanged {
		did = append(did, "MiniStack does not change `"+name+"`")
	}
	fmt.Fprintf(b, "- Made and used: %s\n- Tried there: %s\n", where, strings.Join(did, "; "))
}

// A member is a parameter, as its schema has it.
type member struct {
	Type, Description, Pattern string
	Enum                       []string
	Minimum, Maximum           *json.Number
	MaxLength                  *int
	Default                    any
}

// says is the description, with what is taken unless the user gives something.
func (m member) says() string {
	if m.Default == nil || m.Default == "" || m.Default == "-" {
		return m.Description
	}
	return fmt.Sprintf("%s; %v unless given", m.Description, m.Default)
}

func (m member) values() string {
	switch {
	case len(m.Enum) > 0:
		return "`" + strings.Join(m.Enum, "`, `") + "`"
	case m.Minimum != nil && m.Maximum != nil:
		return fmt.Sprintf("%s to %s", *m.Minimum, *m.Maximum)
	case m.MaxLength != nil:
		return fmt.Sprintf("up to %d characters, `%s`", *m.MaxLength, m.Pattern)
	default:
		return m.Type
	}
}

func members(t *testing.T, p *catalog.ParametersSchema) map[string]member {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Parameters struct {
			Properties           map[string]member
			AdditionalProperties *bool
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	if more := schema.Parameters.AdditionalProperties; more == nil || *more {
		t.Errorf("a schema takes what it does not know: %s", raw)
	}
	for name, m := range schema.Parameters.Properties {
		if m.Type == "string" && m.Enum == nil && (m.MaxLength == nil || m.Pattern == "") {
			t.Errorf("the parameter %s has no bounds", name)
		}
	}
	return schema.Parameters.Properties
}

func parameters(t *testing.T, b *strings.Builder, p catalog.Plan) {
	t.Helper()
	create, change := members(t, p.Schemas.ServiceInstance.Create), members(t, p.Schemas.ServiceInstance.Update)
	b.WriteString("\n| parameter | values | | changes later |\n| --- | --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(create)) {
		later := "no"
		if _, ok := change[name]; ok {
			later = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, strings.ReplaceAll(create[name].values(), "|", "\\|"),
			create[name].says(), later)
	}
}

// The page of four files shows those that are tried.
func TestPageOfFourFiles(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cloudformation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"offering.yaml", "template.yaml", "permissions.json", "policy.json"} {
		file, err := os.ReadFile(filepath.Join("../../../docs/examples", servicestest.Own().Offering, name))
		if err != nil {
			t.Fatal(err)
		}
		if block := "```" + filepath.Ext(name)[1:] + "\n" + string(file) + "```"; !strings.Contains(string(page), block) {
			t.Errorf("docs/cloudformation.md does not show %s as it is in docs/examples", name)
		}
	}
}

// What a careful engineer asks of templates and rights holds for all that ship.
func TestRules(t *testing.T) {
	c, all := shipped(t)
	if len(all) != len(servicestest.Services()) {
		t.Fatalf("%d offerings ship, and %d are used", len(all), len(servicestest.Services()))
	}
	for name, o := range all {
		if len(o.Plans) < 2 {
			t.Errorf("%s has fewer than two plans", name)
		}
		for _, p := range o.Plans {
			m, err := plan.Parse(p.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			at := name + "/" + p.Name
			if err := c.Check(catalog.Create, o.ID, p.ID, nil); err != nil {
				t.Errorf("%s cannot be ordered without parameters: %v", at, err)
			}
			if m.Proof == nil || p.MaintenanceInfo == nil || p.BindingRotatable == nil || !*p.BindingRotatable ||
				o.Bindable != true {
				t.Errorf("%s lacks a proof, a version or the rotation of bindings", at)
			}
			binding(t, at, m.Policy)
			template, ok := c.File(m.Template)
			if !ok {
				t.Fatalf("%s: the catalog lacks the template", at)
			}
			encrypted(t, at, m, string(template))
		}
	}
}

// binding holds what a binding may do to what is of its instance.
func binding(t *testing.T, at string, raw json.RawMessage) {
	t.Helper()
	policy, err := iampolicy.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			if s.Effect == iampolicy.EffectAllow && strings.ContainsAny(action, "*?") {
				t.Errorf("%s: a binding may do %s", at, action)
			}
		}
		unnamed := !slices.ContainsFunc(s.Action, func(action string) bool { return !plan.Unnamed(action) })
		for _, resource := range s.Resource {
			if resource == "*" && unnamed {
				continue // IAM knows no other resource of it
			}
			if len(plan.Names(resource)) == 0 || strings.HasPrefix(resource, "*") {
				t.Errorf("%s: a binding reaches %s", at, resource)
			}
		}
	}
}

// encrypted holds templates to what each kind of resource needs to be closed.
func encrypted(t *testing.T, at string, m plan.Settings, template string) {
	t.Helper()
	needs := map[string][]string{
		"AWS::S3::Bucket": {`"SSEAlgorithm":"AES256"`, `"BlockPublicAcls":true`, `"BlockPublicPolicy":true`,
			`"IgnorePublicAcls":true`,
			`"RestrictPublicBuckets":true`, `"ObjectOwnership":"BucketOwnerEnforced"`, `"aws:SecureTransport":"false"`},
		"AWS::SQS::Queue": {`"SqsManagedSseEnabled":true`, `"RedrivePolicy"`, `"aws:SecureTransport":"false"`},
		"AWS::SNS::Topic": {`"KmsMasterKeyId":"alias/aws/sns"`, `"AWS::SNS::TopicPolicy"`,
			`"aws:SecureTransport":"false"`},
		"AWS::DynamoDB::Table":        {`"PAY_PER_REQUEST"`, `"PointInTimeRecoverySpecification"`},
		"AWS::Kinesis::Stream":        {`"EncryptionType":"KMS"`},
		"AWS::KMS::Key":               {`"EnableKeyRotation"`, `"KeyPolicy"`},
		"AWS::SecretsManager::Secret": {`"KmsKeyId":"alias/aws/secretsmanager"`, `"GenerateSecretString"`},
		"AWS::Events::EventBus":       {`"Name"`},
		"AWS::S3::BucketPolicy":       nil, "AWS::SQS::QueuePolicy": nil, "AWS::SNS::TopicPolicy": nil,
	}
	for _, kind := range m.Resources {
		all, known := needs[kind]
		if !known {
			t.Errorf("%s: nothing says what %s needs to be closed", at, kind)
		}
		for _, need := range all {
			if !strings.Contains(template, need) {
				t.Errorf("%s: %s lacks %s", at, kind, need)
			}
		}
	}
}
