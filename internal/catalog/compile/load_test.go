package compile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// The tests of the catalog and of its compiler share these.
const sound = catalogtest.Sound

var known, spoil, folder, load = catalogtest.Known, catalogtest.Spoil, catalogtest.Folder, catalogtest.Load

// A found is a problem as tests compare it: its place, and a fragment of what
// it says where one is wanted.
type found struct {
	File  string
	Line  int
	About string
}

// problemsOf checks that err is Problems, that each names a remedy, and
// reduces them to the fragments that the test wants.
func problemsOf(t *testing.T, reason string, err error, want []found) []found {
	t.Helper()
	if err == nil {
		return nil
	}
	var problems compile.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%s\nLoad(...): want Problems, got %T: %v", reason, err, err)
	}
	got := make([]found, len(problems))
	for i, p := range problems {
		if p.Remedy == "" {
			t.Errorf("%s\n%s: want a remedy", reason, &p)
		}
		rendered := fmt.Sprintf("%s:%d: %s; %s", p.File, p.Line, p.What, p.Remedy)
		if p.Line > 0 && p.Error() != rendered {
			t.Errorf("%s\nString(): want %q, got %q", reason, rendered, p.Error())
		}
		got[i] = found{p.File, p.Line, p.What}
		if i < len(want) && strings.Contains(p.Error(), want[i].About) {
			got[i].About = want[i].About
		}
	}
	return got
}

// A refusal is a file with a fault, and what is said of it.
type refusal struct {
	reason string
	text   string
	want   []found
}

func in(line int, about string) found { return found{"offerings/a/offering.yaml", line, about} }

// withSchema is sound with a schema for provision, which begins on line 15.
func withSchema(lines ...string) string {
	return spoil(map[int]string{10: "  description: The small one\n  schemas:\n    service_instance:\n      create:\n" +
		"        parameters:\n " +
		"         " +
		strings.Join(lines, "\n          ")})
}

const draft = `$schema: "http://json-schema.org/draft-04/schema#"`

func TestLoadRefuses(t *testing.T) {
	for _, cases := range []func() map[string]refusal{refusedFiles, refusedMembers, refusedPlans, refusedSchemas} {
		for name, tc := range cases() {
			t.Run(name, func(t *testing.T) {
				c, err := load(map[string]string{"a/offering.yaml": tc.text})
				if c != nil {
					t.Errorf("%s\nLoad(...): want no catalog", tc.reason)
				}
				expect.Same(t, fmt.Sprintf("%s\nLoad(...)", tc.reason), tc.want, problemsOf(t, tc.reason, err, tc.want))
			})
		}
	}
}

func refusedFiles() map[string]refusal {
	return map[string]refusal{
		"Empty": {reason: "An empty file was perhaps meant to become an offering.", text: "", want: []found{in(1, "empty")}},
		"OnlyComments": {reason: "A file of comments is empty as well.",
			text: "# nothing\n",
			want: []found{in(1, "empty")}},
		"NotYAML": {reason: "What the YAML library refuses is told with its line.", text: "id: a\nname: b: c\n",
			want: []found{in(2, "not YAML")}},
		"UnknownAnchor": {reason: "The library tells no line for an alias without an anchor; we do.",
			text: spoil(map[int]string{3: "description: *none"}), want: []found{in(3, "none")}},
		"NotAMapping": {reason: "A list of offerings in one file is not the form.", text: "- id: a\n",
			want: []found{in(1, "must be an object")}},
		"SeveralDocuments": {reason: "Each offering has a file of its own.", text: sound + "---\n" + sound,
			want: []found{in(14, "several documents")}},
		"DuplicateMember": {reason: "A member given twice would silently lose one value.",
			text: spoil(map[int]string{3: "description: The first\nname: two"}), want: []found{in(4, "first on line 2")}},
		"NameIsNoString": {reason: "Member names are strings in JSON.",
			text: spoil(map[int]string{3: "description: The first\n7: two"}), want: []found{in(4, "not a string")}},
		"UnknownMember": {reason: "A mistyped member is found, and its right name suggested.",
			text: spoil(map[int]string{5: "bindable: true\nplan_updatable: true"}),
			want: []found{in(6, `did you mean "plan_updateable"?`)}},
		"UnknownMemberFarOff": {reason: "CAT-10: legacy and invented members are refused with what is known.",
			text: spoil(map[int]string{5: "bindable: true\nmax_db_per_node: 5"}),
			want: []found{in(6, "known here: allow_context_updates, asynchronous, asynchronous_binding, bindable")}},
		"UnknownPlanMember": {reason: "Plans are checked like offerings; camel case is recognised.",
			text: spoil(map[int]string{10: "  description: The small one\n  planUpdateable: true"}),
			want: []found{in(11, `did you mean "plan_updateable"?`)}},
		"NullMember": {reason: "CAT-27: null is never emitted, so it is never taken either.",
			text: spoil(map[int]string{5: "bindable: true\ntags:"}), want: []found{in(6, "tags has no value")}},
		"EverythingMissing": {
			reason: "CAT-02: all problems are told at once.",
			text:   "{}\n",
			want: []found{in(1, "bindable is required"), in(1, "description is required"), in(1, "id is required"),
				in(1, "name is required"), in(1, "plans is required"), in(1, "provider is required")},
		},
		"PlanMembersMissing": {reason: "CAT-03: a plan needs id, name and description.",
			text: spoil(map[int]string{8: "- free: true", 9: "", 10: ""}),
			want: []found{in(8, "plans[0].description"), in(8, "plans[0].id"), in(8, "plans[0].name")}},
		"NoPlans": {reason: "CAT-02: an offering without a plan cannot be used.",
			text: spoil(map[int]string{7: "plans: []", 8: "", 9: "", 10: "", 11: "", 12: "", 13: ""}),
			want: []found{in(7, "at least one plan")}},
		"PlansNoList": {reason: "Plans are a list.",
			text: spoil(map[int]string{7: "plans: none", 8: "", 9: "", 10: "", 11: "", 12: "", 13: ""}),
			want: []found{in(7, "must be an array")}},
		"PlanNoMapping": {reason: "A plan is a mapping.", text: spoil(map[int]string{8: "- small", 9: "", 10: ""}),
			want: []found{in(8, "plans[0] must be an object")}},
		"TextIsNumber": {reason: "A number where text belongs wants quotes.", text: spoil(map[int]string{1: "id: 17"}),
			want: []found{in(1, "quotes")}},
		"TextIsEmpty": {reason: "CAT-02: required strings are not empty, nor blank.",
			text: spoil(map[int]string{1: `id: ""`, 3: `description: "  "`}),
			want: []found{in(1, "id is empty"), in(3, "description is empty")}},
	}
}

func refusedMembers() map[string]refusal {
	return map[string]refusal{
		"IDWithBlanks": {reason: "Ids are typed and put into URLs.", text: spoil(map[int]string{8: "- id: plan 1"}),
			want: []found{in(8, "plans[0].id")}},
		"FlagIsText": {reason: "yes is text in YAML 1.2.", text: spoil(map[int]string{5: "bindable: yes"}),
			want: []found{in(5, "must be a boolean")}},
		"UnfriendlyName": {reason: "CAT-05: names are typed at command lines.",
			text: spoil(map[int]string{2: "name: My Service", 9: "  name: Small"}),
			want: []found{in(2, "name has the wrong form"), in(9, "plans[0].name has the wrong form")}},
		"TooLong": {reason: "CAT-26: names end at 255 characters, descriptions at 10 000.",
			text: spoil(map[int]string{2: "name: " + strings.Repeat("n", 256), 3: "description: " + strings.Repeat("d", 10_001),
				10: "  description: " + strings.Repeat("é", 10_000)}),
			want: []found{in(2, "255"), in(3, "10000")}},
		"TagsTooLong": {reason: "CAT-08: all tags together end at 2048 characters.",
			text: spoil(map[int]string{5: "bindable: true\ntags: [" + strings.Repeat("t", 2000) + ", " +
				strings.Repeat("t", 49) + "]"}),
			want: []found{in(6, "2048")}},
		"TagIsNumber": {reason: "CAT-08: tags are strings.",
			text: spoil(map[int]string{5: "bindable: true\ntags:\n- sql\n- 5"}), want: []found{in(8, "tags[1]")}},
		"UnknownPermission": {reason: "CAT-09: there are three permissions.",
			text: spoil(map[int]string{5: "bindable: true\nrequires: [volume_mounts]"}),
			want: []found{in(6, `did you mean "volume_mount"?`)}},
		"PermissionTwice": {reason: "CAT-09: once is enough.",
			text: spoil(map[int]string{5: "bindable: true\nrequires: [volume_mount, volume_mount]"}),
			want: []found{in(6, "the same item twice")}},
		"UnknownProvider": {reason: "An offering that nothing can make is refused.",
			text: spoil(map[int]string{4: "provider: cloudfromation"}),
			want: []found{in(4, `did you mean "cloudformation"?`)}},
		"DashboardClientInPart": {reason: "CAT-12: all three members or none.",
			text: spoil(map[int]string{5: "bindable: true\ndashboard_client:\n  id: client\n  secret: s3cret"}),
			want: []found{in(6, "dashboard_client.redirect_uri is required")}},
		"DashboardOfAll": {reason: "PROV-24: an instance's dashboard is its own.",
			text: spoil(map[int]string{5: "bindable: true\ndashboard_url: https://example.com/all"}),
			want: []found{in(6, "dashboard_url has the wrong form")}},
		"DashboardTooLong": {reason: "NFR-10: an instance's record holds its dashboard, with its id in it wherever it is named.",
			text: spoil(map[int]string{5: "bindable: true\ndashboard_url: https://example.com/{instance_id}/" +
				strings.Repeat("{instance_id}", 3)}),
			want: []found{in(6, "dashboard_url can become longer than 3072 bytes")}},
		"SettingsTooLarge": {reason: "NFR-10: an instance's record is to hold what its plan meant.",
			text: spoil(map[int]string{10: "  description: The small one\n  settings: {note: " +
				strings.Repeat("n", 16<<10) + "}"}),
			want: []found{in(11, "plans[0].settings is larger than 16384 bytes of JSON")}},
		"DashboardNoAddress": {reason: "PROV-24: a user follows it.",
			text: spoil(map[int]string{5: "bindable: true\ndashboard_url: http://example.com/{instance_id}"}),
			want: []found{in(6, "dashboard_url has the wrong form")}},
		"DashboardOtherPlaceholder": {reason: "PROV-24: nothing else is put in.",
			text: spoil(map[int]string{5: "bindable: true\ndashboard_url: https://example.com/{instance_id}/{plan}"}),
			want: []found{in(6, "dashboard_url has the wrong form")}},
		"MetadataNull": {reason: "CAT-27: null is not emitted inside metadata either.",
			text: spoil(map[int]string{5: "bindable: true\nmetadata:\n  displayName: One\n  deep: {er: ~}"}),
			want: []found{in(8, "metadata.deep.er has no value")}},
		"MetadataConventions": {reason: "CAT-11: platforms read the conventional members without looking.",
			text: spoil(map[int]string{10: "  description: The small one\n  metadata:\n    displayName: 5\n    bullets:\n    " +
				"- content: old form\n" +
				"    costs: [{amount: 5, unit: MONTHLY}]\n    shareable: \"true\""}),
			want: []found{in(12, "displayName"), in(14, "bullets"), in(15, "costs"), in(16, "shareable")}},
		"MetadataNoJSON": {reason: "Infinity has no form in JSON.",
			text: spoil(map[int]string{5: "bindable: true\nmetadata: {weight: .inf}"}),
			want: []found{in(6, "metadata.weight")}},
		"UnknownMode": {reason: "There are three modes.",
			text: spoil(map[int]string{10: "  description: The small one\n  asynchronous: alowed\n  " +
				"asynchronous_binding: false"}),
			want: []found{in(11, `did you mean "allowed"?`), in(12, `"never", "allowed", "required"`)}},
	}
}

func refusedPlans() map[string]refusal {
	return map[string]refusal{
		"PollingDuration": {reason: "CAT-23: whole seconds above zero.",
			text: spoil(map[int]string{10: "  description: d\n  maximum_polling_duration: 0",
				13: "  description: d\n  maximum_polling_duration: 1.5"}),
			want: []found{in(11, "at least 1"), in(15, "must be an integer")}},
		"DurationNotInDigits": {reason: "A deadline that cannot be read is not left out without a word.",
			text: spoil(map[int]string{10: "  description: d\n  maximum_polling_duration: 3600.0",
				13: "  description: d\n  typical_duration: 6e1"}),
			want: []found{in(11, "maximum_polling_duration has a fraction or an exponent"), in(15, "typical_duration has a")}},
		"TypicalDuration": {reason: "Whole seconds, not beyond the deadline.",
			text: spoil(map[int]string{10: "  description: d\n  typical_duration: soon",
				13: "  description: d\n  maximum_polling_duration: 60\n  typical_duration: 61"}),
			want: []found{in(11, "must be an integer"), in(16, "longer than maximum_polling_duration")}},
		"MaintenanceVersion": {reason: "CAT-24: Semantic Versioning 2.0.",
			text: spoil(map[int]string{10: "  description: d\n  maintenance_info: {version: \"1.02.0\"}",
				13: "  description: d\n  maintenance_info:\n    version: 1.0"}),
			want: []found{in(11, "version has the wrong form"), in(16, "quotes")}},
		"MaintenanceTooLong": {reason: "CAT-24: 2000 characters of JSON.",
			text: spoil(map[int]string{10: "  description: d\n  maintenance_info:\n    version: 1.0.0\n    description: " +
				strings.Repeat("d", 1965)}),
			want: []found{in(11, "2000")}},
		"MaintenanceMember": {reason: "CAT-24: no other members.",
			text: spoil(map[int]string{10: "  description: d\n  maintenance_info: {version: 1.0.0, url: here}"}),
			want: []found{in(11, "unknown member")}},
		"AsynchronousBindingNotRetrievable": {reason: "CAT-18: the credentials would be out of reach.",
			text: spoil(map[int]string{6: "", 13: "  description: d\n  asynchronous_binding: allowed"}),
			want: []found{in(13, "bindings_retrievable: true")}},
		"NotBindableYetBound": {
			reason: "What has no effect on a plan that is not bindable was meant otherwise.",
			text: spoil(map[int]string{13: "  description: d\n  bindable: false\n  asynchronous_binding: required\n  " +
				"requires_app: true\n" +
				"  binding_rotatable: true\n  schemas: {service_binding: {create: {parameters: {" + draft +
				", type: object}}}}"}),
			want: []found{in(15, "asynchronous_binding"), in(16, "requires_app"), in(17, "binding_rotatable"), in(18, "schemas")},
		},
		"SchemaWithoutDraft": {reason: "CAT-21: $schema is present.", text: withSchema("type: object"),
			want: []found{in(14, "parameters.$schema is required")}},
		"SchemaOfAnotherKind": {reason: "CAT-21: a meta-schema from elsewhere would have to be fetched.",
			text: withSchema("type: object", "$schema: https://example.com/mine"), want: []found{in(16, "published draft")}},
		"SchemaWithoutType": {reason: "CAT-21: Cloud Controller refuses a schema whose root is not of type object.",
			text: withSchema(draft, "properties: {}"), want: []found{in(14, "parameters.type is required")}},
		"SchemaRefersToFile": {reason: "CAT-21: no external reference, above all to no file of this machine.",
			text: withSchema(draft, "type: object", "properties:", "  a:", "    $ref: file:///etc/hostname"),
			want: []found{in(19, "another document")}},
		"SchemaRefersToMetaSchema": {reason: "CAT-21: platforms fetch no meta-schemas.",
			text: withSchema(draft, "type: object", "allOf:", "- {}", "- $ref: http://json-schema.org/draft-04/schema#"),
			want: []found{in(19, "another document")}},
		"SchemaRefersToNothing": {reason: "A reference within the schema has a target.",
			text: withSchema(draft, "type: object", "properties: {a: {$ref: \"#/definitions/a\"}}"),
			want: []found{in(17, "refers to nothing")}},
		"SchemaBroken": {reason: "CAT-21: the schema follows its draft; the line is that of the fault.",
			text: withSchema(draft, "type: object", "properties:", "  a:", "    type: strng"),
			want: []found{in(19, "properties.a.type")}},
		"SchemaPattern": {reason: "A pattern that Go cannot compile would refuse every request.",
			text: withSchema(draft, "type: object", "properties:", "  a:", "    pattern: (?=x)"),
			want: []found{in(19, "RE2")}},
		"SchemaTooLarge": {reason: "CAT-21: 64 kB of JSON.",
			text: withSchema(draft, "type: object", "description: "+strings.Repeat("d", 64<<10)),
			want: []found{in(14, "65536")}},
		"SchemaNumberExtreme": {reason: "A limit that cannot be represented would be dropped.",
			text: withSchema(draft, "type: object", "minProperties: 1e999999"),
			want: []found{in(17, "minProperties must be an integer")}},
		"SchemasEmpty": {reason: "Empty objects around a schema are refused by platforms.",
			text: spoil(map[int]string{10: "  description: d\n  schemas: {service_instance: {create: {}}, " +
				"service_binding: {update: {}}}"}),
			want: []found{in(11, "service_binding.update is an unknown member"), in(11, "create.parameters is required")}},
		"SchemaSharedAndBroken": {reason: "A schema that aliases share is told of once.",
			text: spoil(map[int]string{
				10: "  description: d\n  schemas: &s {service_instance: {create: {parameters: {" + draft + "}}}}",
				13: "  description: d\n  schemas: *s"}),
			want: []found{in(11, "parameters.type is required")}},
	}
}

func refusedSchemas() map[string]refusal {
	return map[string]refusal{
		"PlanNamesNotUnique": {reason: "CAT-04: plan names are unique within their offering.",
			text: spoil(map[int]string{12: "  name: small"}), want: []found{in(12, "offerings/a/offering.yaml:9")}},
		"PlanIDsNotUnique": {reason: "CAT-04: plan ids are unique.", text: spoil(map[int]string{11: "- id: plan-1"}),
			want: []found{in(11, "offerings/a/offering.yaml:8")}},
		"OfferingIDIsPlanID": {reason: "CAT-04: an offering's id is no plan's id.",
			text: spoil(map[int]string{11: "- id: offering-1"}), want: []found{in(11, "offerings/a/offering.yaml:1")}},
		"AliasOfItself": {reason: "An alias within its own anchor has no end.",
			text: spoil(map[int]string{5: "bindable: true\nmetadata: &m {again: *m}"}),
			want: []found{in(6, "nests more than")}},
		"AliasBomb": {reason: "Aliases of aliases grow beyond all memory.",
			text: spoil(map[int]string{5: "bindable: true\nmetadata:\n  a: &a [" + strings.Repeat("x,", 99) + "]\n  b: &b [" +
				strings.Repeat("*a,", 99) + "]\n  c: [" + strings.Repeat("*b,", 99) + "]"}),
			want: []found{in(7, "expands to more than")}},
	}
}
