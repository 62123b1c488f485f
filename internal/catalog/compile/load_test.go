package compile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// The tests of the catalog and of its compiler share these.
const sound = catalogtest.Sound

var known, spoil, folder, load = catalogtest.Known, catalogtest.Spoil, catalogtest.Folder, catalogtest.Load

// mine is a source of one offering.
func mine(text string) compile.Source {
	return compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": text})}
}

// judgedBy has the provider of the offerings look at each plan.
func judgedBy(judge func(check.Plan) (json.RawMessage, error)) compile.Options {
	return compile.Options{Providers: map[string]check.Func{"demo": judge}}
}

// A found is a problem as tests compare it: its place, and a fragment of what it says where one is wanted.
type found struct {
	File  string
	Line  int
	About string
}

// refuses requires that err is these Problems, and that each names a remedy.
func refuses(t *testing.T, reason string, err error, want ...found) {
	t.Helper()
	problems, ok := errors.AsType[compile.Problems](err)
	if !ok {
		t.Fatalf("%s\nLoad(...): want Problems, got %T: %v", reason, err, err)
	}
	got := make([]found, len(problems))
	for i, p := range problems {
		if p.Remedy == "" {
			t.Errorf("%s\n%s: want a remedy", reason, &p)
		}
		if rendered := fmt.Sprintf("%s:%d: %s; %s", p.File, p.Line, p.What, p.Remedy); p.Line > 0 && p.Error() != rendered {
			t.Errorf("%s\nString(): want %q, got %q", reason, rendered, p.Error())
		}
		got[i] = found{p.File, p.Line, p.What}
		if i < len(want) && strings.Contains(p.Error(), want[i].About) {
			got[i].About = want[i].About
		}
	}
	expect.Same(t, reason+"\nLoad(...)", want, got)
}

// in is a problem of the file that load is given.
func in(line int, about string) found { return found{"offerings/a/offering.yaml", line, about} }

// A refusal is a file with a fault, and what is said of it.
type refusal struct {
	reason, text string
	want         []found
}

func wrong(reason, text string, want ...found) refusal { return refusal{reason, text, want} }

// These are sound with another line n; with members of the offering from line 6 on; with members of its plan small from line
// 11 on, and of its plan large from line 14 on.
func line(n int, text string) string { return spoil(map[int]string{n: text}) }
func with(members string) string     { return line(5, "bindable: true\n"+members) }
func small(members string) string    { return line(10, "  description: d\n  "+members) }
func large(members string) string    { return line(13, "  description: d\n  "+members) }
func both(first, second string) string {
	return spoil(map[int]string{10: "  description: d\n  " + first, 13: "  description: d\n  " + second})
}

// withSchema is sound with a schema for provision, which begins on line 15.
func withSchema(lines ...string) string {
	const indent = "\n          "
	return small("schemas:\n    service_instance:\n      create:\n        parameters:" + indent + strings.Join(lines, indent))
}

const draft = `$schema: "http://json-schema.org/draft-04/schema#"`

func TestLoadRefuses(t *testing.T) {
	for _, tc := range slices.Concat(refusedFiles(), refusedMembers(), refusedPlans(), refusedSchemas()) {
		t.Run(tc.reason, func(t *testing.T) {
			c, err := load(map[string]string{"a/offering.yaml": tc.text})
			if c != nil {
				t.Errorf("%s\nLoad(...): want no catalog", tc.reason)
			}
			refuses(t, tc.reason, err, tc.want...)
		})
	}
}

func refusedFiles() []refusal {
	return []refusal{
		wrong("An empty file was perhaps meant to become an offering.", "", in(1, "empty")),
		wrong("A file of comments is empty as well.", "# nothing\n", in(1, "empty")),
		wrong("What the YAML library refuses is told with its line.", "id: a\nname: b: c\n", in(2, "not YAML")),
		wrong("The library tells no line for an alias without an anchor; we do.", line(3, "description: *none"), in(3, "none")),
		wrong("A list of offerings in one file is not the form.", "- id: a\n", in(1, "must be an object")),
		wrong("Each offering has a file of its own.", sound+"---\n"+sound, in(14, "several documents")),
		wrong("A member given twice would silently lose one value.",
			line(3, "description: The first\nname: two"), in(4, "first on line 2")),
		wrong("Member names are strings in JSON.", line(3, "description: The first\n7: two"), in(4, "not a string")),
		wrong("A mistyped member is found, and its right name suggested.",
			with("plan_updatable: true"), in(6, `did you mean "plan_updateable"?`)),
		wrong("CAT-10: legacy and invented members are refused with what is known.",
			with("max_db_per_node: 5"), in(6, "known here: allow_context_updates, asynchronous, asynchronous_binding, bindable")),
		wrong("Plans are checked like offerings; camel case is recognised.",
			small("planUpdateable: true"), in(11, `did you mean "plan_updateable"?`)),
		wrong("CAT-27: null is never emitted, so it is never taken either.", with("tags:"), in(6, "tags has no value")),
		wrong("CAT-02: all problems are told at once.", "{}\n", in(1, "bindable is required"),
			in(1, "description is required"), in(1, "id is required"), in(1, "name is required"), in(1, "plans is required"),
			in(1, "provider is required")),
		wrong("CAT-03: a plan needs id, name and description.", spoil(map[int]string{8: "- free: true", 9: "", 10: ""}),
			in(8, "plans[0].description"), in(8, "plans[0].id"), in(8, "plans[0].name")),
		wrong("CAT-02: an offering without a plan cannot be used.",
			spoil(map[int]string{7: "plans: []", 8: "", 9: "", 10: "", 11: "", 12: "", 13: ""}), in(7, "at least one plan")),
		wrong("Plans are a list.",
			spoil(map[int]string{7: "plans: none", 8: "", 9: "", 10: "", 11: "", 12: "", 13: ""}), in(7, "must be an array")),
		wrong("A plan is a mapping.", spoil(map[int]string{8: "- small", 9: "", 10: ""}), in(8, "plans[0] must be an object")),
		wrong("A number where text belongs wants quotes.", line(1, "id: 17"), in(1, "quotes")),
		wrong("CAT-02: required strings are not empty, nor blank.",
			spoil(map[int]string{1: `id: ""`, 3: `description: "  "`}), in(1, "id is empty"), in(3, "description is empty")),
	}
}

func refusedMembers() []refusal {
	return []refusal{
		wrong("Ids are typed and put into URLs.", line(8, "- id: plan 1"), in(8, "plans[0].id")),
		wrong("yes is text in YAML 1.2.", line(5, "bindable: yes"), in(5, "must be a boolean")),
		wrong("CAT-05: names are typed at command lines.", spoil(map[int]string{2: "name: My Service",
			9: "  name: Small"}), in(2, "name has the wrong form"), in(9, "plans[0].name has the wrong form")),
		wrong("CAT-26: names end at 255 characters, descriptions at 10 000.", spoil(map[int]string{
			2: "name: " + strings.Repeat("n", 256), 3: "description: " + strings.Repeat("d", 10_001),
			10: "  description: " + strings.Repeat("é", 10_000)}), in(2, "255"), in(3, "10000")),
		wrong("CAT-08: all tags together end at 2048 characters.",
			with("tags: ["+strings.Repeat("t", 2000)+", "+strings.Repeat("t", 49)+"]"), in(6, "2048")),
		wrong("CAT-08: tags are strings.", with("tags:\n- sql\n- 5"), in(8, "tags[1]")),
		wrong("CAT-09: there are three permissions.", with("requires: [volume_mounts]"), in(6, `did you mean "volume_mount"?`)),
		wrong("CAT-09: once is enough.", with("requires: [volume_mount, volume_mount]"), in(6, "the same item twice")),
		wrong("An offering that nothing can make is refused.", line(4, "provider: cloudfromation"),
			in(4, `did you mean "cloudformation"?`)),
		wrong("CAT-12: all three members or none.",
			with("dashboard_client:\n  id: client\n  secret: s3cret"), in(6, "dashboard_client.redirect_uri is required")),
		wrong("PROV-24: an instance's dashboard is its own.", with("dashboard_url: https://example.com/all"),
			in(6, "dashboard_url has the wrong form")),
		wrong("NFR-10: an instance's record holds its dashboard, with its id in it wherever it is named.",
			with("dashboard_url: https://example.com/{instance_id}/"+strings.Repeat("{instance_id}", 3)),
			in(6, "dashboard_url can become longer than 3072 bytes")),
		wrong("NFR-10: an instance's record is to hold what its plan meant.",
			small("settings: {note: "+strings.Repeat("n", 16<<10)+"}"),
			in(11, "plans[0].settings is larger than 16384 bytes of JSON")),
		wrong("PROV-24: a user follows it.", with("dashboard_url: http://example.com/{instance_id}"),
			in(6, "dashboard_url has the wrong form")),
		wrong("PROV-24: nothing else is put in.",
			with("dashboard_url: https://example.com/{instance_id}/{plan}"), in(6, "dashboard_url has the wrong form")),
		wrong("CAT-27: null is not emitted inside metadata either.",
			with("metadata:\n  displayName: One\n  deep: {er: ~}"), in(8, "metadata.deep.er has no value")),
		wrong("CAT-11: platforms read the conventional members without looking.",
			small("metadata:\n    displayName: 5\n    bullets:\n    - content: old form\n"+
				"    costs: [{amount: 5, unit: MONTHLY}]\n    shareable: \"true\""),
			in(12, "displayName"), in(14, "bullets"), in(15, "costs"), in(16, "shareable")),
		wrong("Infinity has no form in JSON.", with("metadata: {weight: .inf}"), in(6, "metadata.weight")),
		wrong("There are three modes.", small("asynchronous: alowed\n  asynchronous_binding: false"),
			in(11, `did you mean "allowed"?`), in(12, `"never", "allowed", "required"`)),
	}
}

func refusedPlans() []refusal {
	return []refusal{
		wrong("CAT-23: whole seconds above zero.",
			both("maximum_polling_duration: 0", "maximum_polling_duration: 1.5"), in(11, "at least 1"),
			in(15, "must be an integer")),
		wrong("A deadline that cannot be read is not left out without a word.",
			both("maximum_polling_duration: 3600.0", "typical_duration: 6e1"),
			in(11, "maximum_polling_duration has a fraction or an exponent"), in(15, "typical_duration has a")),
		wrong("Whole seconds, not beyond the deadline.",
			both("typical_duration: soon", "maximum_polling_duration: 60\n  typical_duration: 61"),
			in(11, "must be an integer"), in(16, "longer than maximum_polling_duration")),
		wrong("CAT-24: Semantic Versioning 2.0.",
			both(`maintenance_info: {version: "1.02.0"}`, "maintenance_info:\n    version: 1.0"),
			in(11, "version has the wrong form"), in(16, "quotes")),
		wrong("CAT-24: 2000 characters of JSON.", small("maintenance_info:\n    version: 1.0.0\n"+
			"    description: "+strings.Repeat("d", 1965)), in(11, "2000")),
		wrong("CAT-24: no other members.", small("maintenance_info: {version: 1.0.0, url: here}"), in(11, "unknown member")),
		wrong("CAT-18: the credentials would be out of reach.",
			spoil(map[int]string{6: "", 13: "  description: d\n  asynchronous_binding: allowed"}),
			in(13, "bindings_retrievable: true")),
		wrong("What has no effect on a plan that is not bindable was meant otherwise.",
			large("bindable: false\n  asynchronous_binding: required\n  requires_app: true\n  binding_rotatable: true\n"+
				"  schemas: {service_binding: {create: {parameters: {"+draft+", type: object}}}}"),
			in(15, "asynchronous_binding"), in(16, "requires_app"), in(17, "binding_rotatable"), in(18, "schemas")),
		wrong("CAT-21: $schema is present.", withSchema("type: object"), in(14, "parameters.$schema is required")),
		wrong("CAT-21: a meta-schema from elsewhere would have to be fetched.",
			withSchema("type: object", "$schema: https://example.com/mine"), in(16, "published draft")),
		wrong("CAT-21: Cloud Controller refuses a schema whose root is not of type object.",
			withSchema(draft, "properties: {}"), in(14, "parameters.type is required")),
		wrong("CAT-21: no external reference, above all to no file of this machine.",
			withSchema(draft, "type: object", "properties:", "  a:", "    $ref: file:///etc/hostname"),
			in(19, "another document")),
		wrong("CAT-21: platforms fetch no meta-schemas.", withSchema(draft, "type: object", "allOf:",
			"- {}", "- $ref: http://json-schema.org/draft-04/schema#"), in(19, "another document")),
		wrong("A reference within the schema has a target.",
			withSchema(draft, "type: object", `properties: {a: {$ref: "#/definitions/a"}}`), in(17, "refers to nothing")),
		wrong("CAT-21: the schema follows its draft; the line is that of the fault.",
			withSchema(draft, "type: object", "properties:", "  a:", "    type: strng"), in(19, "properties.a.type")),
		wrong("A pattern that Go cannot compile would refuse every request.",
			withSchema(draft, "type: object", "properties:", "  a:", "    pattern: (?=x)"), in(19, "RE2")),
		wrong("CAT-21: 64 kB of JSON.",
			withSchema(draft, "type: object", "description: "+strings.Repeat("d", 64<<10)), in(14, "65536")),
		wrong("A limit that cannot be represented would be dropped.",
			withSchema(draft, "type: object", "minProperties: 1e999999"), in(17, "minProperties must be an integer")),
		wrong("Empty objects around a schema are refused by platforms.",
			small("schemas: {service_instance: {create: {}}, service_binding: {update: {}}}"),
			in(11, "service_binding.update is an unknown member"), in(11, "create.parameters is required")),
		wrong("A schema that aliases share is told of once.",
			both("schemas: &s {service_instance: {create: {parameters: {"+draft+"}}}}", "schemas: *s"),
			in(11, "parameters.type is required")),
	}
}

func refusedSchemas() []refusal {
	return []refusal{
		wrong("CAT-04: plan names are unique within their offering.", line(12, "  name: small"),
			in(12, "offerings/a/offering.yaml:9")),
		wrong("CAT-04: plan ids are unique.", line(11, "- id: plan-1"), in(11, "offerings/a/offering.yaml:8")),
		wrong("CAT-04: an offering's id is no plan's id.", line(11, "- id: offering-1"), in(11, "offerings/a/offering.yaml:1")),
		wrong("An alias within its own anchor has no end.", with("metadata: &m {again: *m}"), in(6, "nests more than")),
		wrong("Aliases of aliases grow beyond all memory.",
			with("metadata:\n  a: &a ["+strings.Repeat("x,", 99)+"]\n  b: &b ["+strings.Repeat("*a,", 99)+"]\n  c: ["+
				strings.Repeat("*b,", 99)+"]"), in(7, "expands to more than")),
	}
}

func TestLoadSources(t *testing.T) {
	other := strings.NewReplacer("offering-1", "offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "name: one",
		"name: nine").Replace(sound)
	client := "dashboard_client: {id: client, secret: s3cret, redirect_uri: \"https://example.com\"}\n"
	one := func(of fs.FS) []compile.Source { return []compile.Source{{Name: "mine", FS: of}} }
	for _, tc := range []struct {
		reason  string
		sources []compile.Source
		want    []found
	}{
		{"An operator who names a folder means it to hold something; each is judged by itself.", []compile.Source{
			{Name: "shipped", FS: folder(map[string]string{"a/offering.yaml": sound})},
			{Name: "mine", FS: folder(map[string]string{"README.md": "", ".hidden.yaml": "{", ".git/offering.yaml": other})},
		}, []found{{"mine", 0, "no offering"}}},
		{"What looks like an offering and would not be read is told of, and where it belongs.",
			one(folder(map[string]string{"a.yaml": sound, "b/offering.yml": other, "c/offering.yaml": sound})),
			[]found{{"mine/a.yaml", 0, "move it to mine/a/offering.yaml"},
				{"mine/b", 0, "holds no offering.yaml; rename offering.yml"}}},
		{"A folder that its owner alone may read is not taken for an empty one.",
			one(unreadable{folder(map[string]string{"a/offering.yaml": sound, "b/offering.yaml": other}), "b"}),
			[]found{{"mine/b", 0, "cannot be read"}}},
		{"A file beyond any real one is not read into memory.",
			[]compile.Source{mine(strings.Repeat("#", 1<<20+1))}, []found{{"mine/a/offering.yaml", 1, "larger"}}},
		{"CAT-04: ids, offering names and client ids are unique over all files; the later file is at fault.", []compile.Source{
			{Name: "shipped", FS: folder(map[string]string{"a/offering.yaml": sound + client})},
			{Name: "mine", FS: folder(map[string]string{
				"a/offering.yaml": strings.Replace(other, "offering-9", "offering-1", 1) + client,
				"b/offering.yaml": strings.NewReplacer("offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "plan-7",
					"name: nine", "name: one").Replace(other)})},
		}, []found{{"mine/a/offering.yaml", 1, "shipped/a/offering.yaml:1"},
			{"mine/a/offering.yaml", 14, "shipped/a/offering.yaml:14"}, {"mine/b/offering.yaml", 1, "shipped/a/offering.yaml:8"},
			{"mine/b/offering.yaml", 2, "shipped/a/offering.yaml:2"}, {"mine/b/offering.yaml", 8, "shipped/a/offering.yaml:11"}}},
		{"Problems come in the order of the files, then of lines.", []compile.Source{
			{Name: "z", FS: folder(map[string]string{"a/offering.yaml": "{",
				"b/offering.yaml": spoil(map[int]string{2: "name: A", 1: "id: 5"})})},
			{Name: "a", FS: folder(map[string]string{"a/offering.yaml": "[]"})},
		}, []found{{"a/a/offering.yaml", 1, "must be an object"}, {"z/a/offering.yaml", 1, "not YAML"},
			{"z/b/offering.yaml", 1, "id"}, {"z/b/offering.yaml", 2, "name"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := compile.Load(known, tc.sources...)
			refuses(t, tc.reason, err, tc.want...)
		})
	}
}

// An unreadable file system lets nobody into one of its folders.
type unreadable struct {
	fs.FS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, u.name+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

// Other files beside an offering are its provider's, whatever their names; the folder of one offering is a source too.
func TestLoadLeavesOtherFiles(t *testing.T) {
	one := map[string]string{"offering.yaml": sound, "template.yaml": "Resources: [", "policies/deep/offering.yaml": "{"}
	within := map[string]string{}
	for name, text := range one {
		within["a/"+name] = text
	}
	for _, files := range []map[string]string{one, within} {
		c, err := load(files)
		if err != nil || len(c.Offerings()) != 1 {
			t.Errorf("want one offering, got %v", err)
		}
	}
}

// FuzzLoad requires that no file makes Load panic, hang, or say nothing of what it refuses.
func FuzzLoad(f *testing.F) {
	f.Add(sound)
	f.Add(spoil(map[int]string{10: "  description: d\n  schemas: &s {service_instance: {create: {parameters: {$schema: " +
		"\"http://json-schema.org/draft-04/schema#\", type: object, id: \"x#y\", properties: {a: {$ref: \"#\"}}}}}}",
		13: "  <<: {schemas: *s}\n  description: d"}))
	f.Add(spoil(map[int]string{10: "  description: d\n  schemas: {service_binding: {create: {parameters: {$schema: " +
		"\"https://json-schema.org/draft/2020-12/schema\", type: object, $id: \"a:b\", $dynamicAnchor: a, $defs: {b: {$id: c, " +
		"$anchor: a}}}}}}"}))
	f.Add("&a {b: *a, <<: [*a, *a]}")
	f.Add("[[[[")
	f.Add("a: !!binary x\n? [b]\n: !!float z\n")
	f.Add("---\n...\n---\n")
	f.Add("id: \x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := load(map[string]string{"a/offering.yaml": text})
		var problems compile.Problems
		switch {
		case err == nil && c == nil, err != nil && c != nil:
			t.Fatalf("want either a catalog or an error, got %v, %v", c, err)
		case err != nil && (!errors.As(err, &problems) || len(problems) == 0):
			t.Fatalf("want problems, got %T: %v", err, err)
		case err == nil:
			for _, o := range c.Offerings() {
				if _, err := json.Marshal(o); err != nil {
					t.Fatalf("what loads must have a form in JSON: %v", err)
				}
				for _, p := range o.Plans {
					// A schema that compiles must be able to judge.
					_ = c.Check(catalog.Create, o.ID, p.ID, json.RawMessage(`{"a":{"b":[1,2.5e3,null,"x"]}}`))
				}
			}
		}
		for _, p := range problems {
			if p.What == "" || p.Remedy == "" || p.Line < 1 {
				t.Errorf("want line, words and remedy, got %+v", p)
			}
		}
	})
}
