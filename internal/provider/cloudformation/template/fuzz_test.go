package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/internal/test/expect"
)

// FuzzCheck requires that no template makes Check panic, hang, or be silent: it gives
// a snapshot, the same each time, or says what is wrong.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		queueTemplate, "", "{}", "a: &a [*a]", "Resources: {X: {Type: AWS::S3::Bucket}}", "{\"Resources\":\t{}}",
		"Resources: {Queue: {Type: AWS::SQS::Queue, Properties: !If [A, !Ref B, !Sub ['${C}', {C: !GetAtt D.E}]]}}",
		"Conditions: {A: !And [!Condition B, !Not [!Condition A]], B: !Equals [!FindInMap [A, B, C], !Select [9, !Split ['', x]]]}",
		"Resources: {A: {Type: Custom::X, Properties: {B: !Ref C}}, C: {Type: Custom::X, Properties: {B: !GetAtt A.B}}}",
		"Resources: {A: {Type: AWS::S3::Bucket, Condition: A}}\nConditions: {A: !Condition A}",
		"Mappings: {A: {B: {C: !FindInMap [A, B, C]}}}\nResources: {A: {Type: X, Properties: {B: !FindInMap [A, B, C]}}}",
		"Resources: {A: !!binary eA==, B: !Ref [A], C: !Sub '${', ? [a] : b}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checked := changed(t, holding("template.yaml", text), holding("template.json", text))
		for _, name := range []string{"template.yaml", "template.json"} {
			checked.Settings["template"] = name
			snapshot, err := template.Check(checked)
			again, _ := template.Check(checked)
			switch {
			case string(snapshot) != string(again):
				t.Fatalf("two snapshots of one plan:\n%s\n%s", snapshot, again)
			case err != nil && strings.TrimSpace(err.Error()) == "":
				t.Fatal("it is refused without a word")
			case err == nil && len(snapshot) <= limits.Snapshot:
				expect.Get(plan.Parse(snapshot))(t)
			}
		}
	})
}

// Names that refer to one another, each to the one before twice, take no time that doubles with each.
func TestManyReferences(t *testing.T) {
	all := "  R0: {Type: AWS::SQS::Queue}\n"
	for i := range 59 {
		all += fmt.Sprintf("  R%d: {Type: AWS::DynamoDB::Table, Properties: "+
			"{ImportSourceSpecification: {A: !Ref R%d, B: !GetAtt R%[2]d.Arn}}}\n", i+1, i)
	}
	if m := settingsOf(t, changed(t, more(all), tables)); len(strings.Fields(m.Shape)) != 62 {
		t.Errorf("its shape: %s", m.Shape)
	}
}
