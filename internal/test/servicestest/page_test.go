package servicestest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/golden"
	"github.com/longshore/longshore/internal/test/servicestest"
)

// shipped are the offerings of AWS services, by their names.
func shipped(t *testing.T) (*catalog.Catalog, map[string]catalog.Offering) {
	t.Helper()
	c := expect.Get(offeringfiles.Load(""))(t)
	all := map[string]catalog.Offering{}
	for _, o := range c.Offerings() {
		if o.Provider == "cloudformation" {
			all[o.Name] = o
		}
	}
	return c, all
}

// The page says what ships, and where it was tried.
func TestPageIsCurrent(t *testing.T) { golden.Part(t, "../../../docs/catalog.md", write(t)) }

func write(t *testing.T) string {
	t.Helper()
	_, all := shipped(t)
	var b strings.Builder
	b.WriteString("\n| offering | credentials | shown by no test |\n| --- | --- | --- |\n")
	for _, s := range servicestest.Services() {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s |\n", s.Offering, s.Offering, strings.Join(s.Credentials, "`, `"), unproved(s))
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

// unproved is what no test shows of a service, and its parameters that MiniStack does not show or change.
func unproved(s servicestest.Service) string {
	said := []string{strings.TrimPrefix(s.Unproved, "encryption at rest, ")}
	for _, p := range s.Plans {
		for _, name := range slices.Concat(p.Unseen, p.Unchanged) {
			if name = "`" + name + "`"; !slices.Contains(said, name) {
				said = append(said, name)
			}
		}
	}
	return strings.Join(said, ", ")
}

// rules says in words what becomes of what an instance holds, unless it is removed.
var rules = map[plan.Rule]string{
	plan.Empty:  "",
	plan.Retain: "**A deletion leaves it in the account.**",
	plan.Refuse: "**A deletion is refused while something is in it.**",
}

// A shown is the metadata that platforms show.
type shown struct {
	LongDescription string
	Bullets         []string
}

func shownOf(t *testing.T, metadata json.RawMessage) (s shown) {
	t.Helper()
	expect.OK(t, json.Unmarshal(metadata, &s))
	return s
}

func section(t *testing.T, b *strings.Builder, o catalog.Offering, s servicestest.Service) {
	t.Helper()
	expect.Same(t, fmt.Sprintf("%s: a move is tried", o.Name), s.Moves, o.PlanUpdateable)
	settings := make([]plan.Settings, len(o.Plans))
	for i, p := range o.Plans {
		settings[i] = expect.Get(plan.Parse(p.Snapshot))(t)
		if i >= len(s.Plans) || s.Plans[i].Name != p.Name {
			t.Fatalf("nobody tries %s of %s", p.Name, s.Offering)
		}
		tried(t, s, s.Plans[i], p, settings[i])
	}
	common := shownOf(t, o.Plans[0].Metadata).Bullets
	for _, p := range o.Plans[1:] {
		bullets := shownOf(t, p.Metadata).Bullets
		common = slices.DeleteFunc(common, func(said string) bool { return !slices.Contains(bullets, said) || saidOfAll(said) })
	}
	long := ownKey.ReplaceAllStringFunc(shownOf(t, o.Metadata).LongDescription, func(said string) string {
		if strings.HasSuffix(said, "which") {
			return " A binding"
		}
		return ""
	})
	says := sentences(append([]string{long}, common...))
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", o.Name, says)
	for i, p := range o.Plans {
		own := slices.DeleteFunc(shownOf(t, p.Metadata).Bullets, func(said string) bool {
			return slices.Contains(common, said) || saidOfAll(said)
		})
		says := sentences(append([]string{p.Description}, own...)) + " " + rules[settings[i].OnDelete]
		fmt.Fprintf(b, "- **%s**: %s\n", p.Name, strings.TrimSpace(says))
	}
	parameters(t, b, o.Plans)
}

// ownKey is what descriptions say of a binding's key, as the page does of all.
var ownKey = regexp.MustCompile(` Each binding has an access key of its own(, which| for [^.]*\.)`)

// saidOfAll matches a bullet that says what the page says of all: that something is encrypted, or what a deletion does.
var saidOfAll = regexp.MustCompile(`^Encrypted$|^Deleting the instance|^Only an empty|when the instance is deleted$`).MatchString

// sentences ends each text with a full stop.
func sentences(texts []string) string {
	for i, text := range texts {
		texts[i] = strings.TrimSuffix(text, ".") + "."
	}
	return strings.Join(texts, " ")
}

// tried holds a plan to how it is tried: with every parameter that an order or an update takes.
func tried(t *testing.T, s servicestest.Service, tried servicestest.Plan, p catalog.Plan, m plan.Settings) {
	t.Helper()
	at := s.Offering + "/" + p.Name
	for given, schema := range map[string]*catalog.ParametersSchema{
		tried.Given: p.Schemas.For(catalog.Create), tried.Changed: p.Schemas.For(catalog.Update),
	} {
		var values map[string]any
		expect.OK(t, json.Unmarshal([]byte(given), &values))
		expect.Same(t, fmt.Sprintf("%s: parameters that are there, and that are tried", at),
			slices.Sorted(maps.Keys(members(t, schema))), slices.Sorted(maps.Keys(values)))
	}
	if tried.OnDelete != m.OnDelete || tried.Role != (m.Principal == plan.Role) {
		t.Errorf("%s: it is tried as %q, role %v", at, tried.OnDelete, tried.Role)
	}
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
	return fmt.Sprintf("%s; default %v", m.Description, m.Default)
}

func (m member) values() string {
	switch {
	case len(m.Enum) > 0:
		return "`" + strings.Join(m.Enum, "`, `") + "`"
	case m.Minimum != nil && m.Maximum != nil:
		return fmt.Sprintf("%s to %s", *m.Minimum, *m.Maximum)
	case m.MaxLength != nil:
		return fmt.Sprintf("up to %d characters", *m.MaxLength)
	default:
		return m.Type
	}
}

func members(t *testing.T, p *catalog.ParametersSchema) map[string]member {
	t.Helper()
	raw := expect.Get(json.Marshal(p))(t)
	var schema struct {
		Parameters struct {
			Properties           map[string]member
			AdditionalProperties *bool
		}
	}
	expect.OK(t, json.Unmarshal(raw, &schema))
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

// parameters lists those of an offering. One that not all plans have in the same way is listed for each of its plans.
func parameters(t *testing.T, b *strings.Builder, plans []catalog.Plan) {
	t.Helper()
	rows := map[string][]string{} // the names of plans
	for _, p := range plans {
		create, change := members(t, p.Schemas.For(catalog.Create)), members(t, p.Schemas.For(catalog.Update))
		for name, m := range create {
			fixed := ""
			if _, ok := change[name]; !ok {
				fixed = "*fixed*, "
			}
			row := fmt.Sprintf("`%s` (%s%%s%s): %s", name, fixed, m.values(), m.says())
			rows[row] = append(rows[row], p.Name)
		}
	}
	b.WriteString("\nParameters:\n\n")
	name := func(row string) string { return strings.Trim(row[:strings.Index(row, " ")], "`") }
	for _, row := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return strings.Compare(name(a), name(b)) }) {
		of := ""
		if len(rows[row]) < len(plans) {
			of = strings.Join(rows[row], ", ") + ", "
		}
		b.WriteString("- " + strings.Replace(row, "%s", of, 1) + "\n")
	}
}

// The page of four files shows those that are tried.
func TestPageOfFourFiles(t *testing.T) {
	page := string(expect.Get(os.ReadFile("../../../docs/cloudformation.md"))(t))
	for _, name := range []string{"offering.yaml", "template.yaml", "permissions.json", "policy.json"} {
		file := expect.Get(os.ReadFile(filepath.Join("../../../docs/examples", servicestest.Own().Offering, name)))(t)
		if block := "```" + filepath.Ext(name)[1:] + "\n" + string(file) + "```"; !strings.Contains(page, block) {
			t.Errorf("docs/cloudformation.md does not show %s as it is in docs/examples", name)
		}
	}
}

// All templates and rights that ship follow a careful engineer's rules.
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
			m := expect.Get(plan.Parse(p.Snapshot))(t)
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
	policy := expect.Get(iampolicy.Parse(raw))(t)
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
		expect.Says(t, at+": "+kind, template, all...)
	}
}
