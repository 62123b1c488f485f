package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// describedBy is what a plan tells of what users may set.
func describedBy(t *testing.T, do ...wrong) check.Parameters {
	t.Helper()
	var got check.Parameters
	describe := func(_ *testing.T, c *check.Plan) { c.Describe = func(all check.Parameters) { got = all } }
	settingsOf(t, changed(t, describe, each(do...)))
	return got
}

// The bounds stand in the template, and are the users'. A plan narrows them.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		do   wrong
		want object
	}{
		"Number": {nil, object{"type": "integer", "minimum": 1, "maximum": 14, "default": 4}},
		"Described": {each(days("Type: Number", "Description: How many\n    AllowedValues: [1, 7]"),
			sources(object{"parameter": "retention_days", "value": 7.0}, never)),
			object{"type": "integer", "enum": []int{1, 7}, "description": "How many", "default": 7}},
		"Text": {days("Type: String", "MaxLength: 9\n    MinLength: 1"),
			object{"type": "string", "minLength": 1, "maxLength": 9, "default": "4"}},
		"Values": {days("Type: String", "AllowedValues: [a, 4]"),
			object{"type": "string", "enum": []string{"a", "4"}, "default": "4"}},
		"Truth": {each(user, days("Type: String", `AllowedValues: ["false", "true"]`)),
			object{"type": "boolean", "default": false}},
		"Pattern": {days("Type: String", "MaxLength: 9\n    AllowedPattern: a[b-d]{1,2}"),
			object{"type": "string", "pattern": "^a[b-d]{1,2}$", "maxLength": 9, "default": "4"}},
		"Alternatives": {days("Type: String", `MaxLength: 9
    AllowedPattern: "^a|b\\.$"`),
			object{"type": "string", "pattern": `^(^a|b\.$)$`, "maxLength": 9, "default": "4"}},
		"Secret": {each(days("Type: String", "MaxLength: 9\n    NoEcho: true"), sources(users, object{"value": "false"})),
			object{"type": "string", "maxLength": 9}},
		"List": {each(days("Type: List<Number>", "MinValue: -9\n    MaxValue: 9"), narrowed(object{"maxItems": 3.0}),
			yaml("Default: a", `Default: "1, -2"`)),
			object{"type": "array", "items": object{"type": "integer", "minimum": -9, "maximum": 9},
				"maxItems": 3, "default": []int{1, -2}}},
		"EmptyList": {each(days("Type: CommaDelimitedList", "MaxLength: 9"), narrowed(object{"maxItems": 3.0}),
			yaml("Default: a", `Default: ""`)), object{"type": "array", "items": object{"type": "string", "maxLength": 9},
			"maxItems": 3, "default": []string{}}},
		"Narrowed": {narrowed(object{"minimum": 2.0, "type": "number", "multipleOf": 0.5, "description": "More"}),
			object{"type": "number", "minimum": 2, "maximum": 14, "multipleOf": 0.5, "description": "More", "default": 4}},
		"Large": {each(days("Type: Number", "AllowedValues: [4, 1000000]"), narrowed(object{"enum": []any{1e6}})),
			object{"type": "integer", "enum": []int{1_000_000}, "default": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := describedBy(t, c.do)
			got := expect.Get(json.Marshal(all.Properties["retention_days"]))(t)
			want := expect.Get(json.Marshal(c.want))(t)
			expect.Same(t, "the parameter's schema", string(want), string(got))
		})
	}
}

// A parameter without a default has to be given, and one that cannot change in place cannot be
// updated. A plan of something that exists takes none.
func TestRequiredAndFixed(t *testing.T) {
	got := describedBy(t, sources(object{"parameter": "days"}, object{"parameter": "fifo"}))
	if diff := cmp.Diff([][]string{{"fifo"}, {"fifo"}}, [][]string{got.Required, got.Fixed}); diff != "" ||
		len(got.Properties) != 2 {
		t.Errorf("required and fixed: -want +got\n%s", diff)
	}
	got = describedBy(t, sources(object{"parameter": "days", "fixed": true}, object{"value": "true"}))
	expect.Same(t, "what the plan keeps as it is", []string{"days"}, got.Fixed)
	got = describedBy(t, func(_ *testing.T, c *check.Plan) {
		describe := c.Describe
		*c = existing(object{"exports": object{"Url": "u", "Arn": "a"}})
		c.Describe = describe
	})
	if len(got.Properties) != 0 || got.Properties == nil {
		t.Errorf("what exists takes %v", got.Properties)
	}
}

// sourced is a plan whose parameters are from there.
func sourced(t *testing.T, parameters object, more ...wrong) plan.Settings {
	t.Helper()
	return settingsOf(t, changed(t, setting("parameters", parameters), each(more...)))
}

// A parameter is fixed if it reaches a property that cannot change in place, by any way, and only then.
func TestFixed(t *testing.T) {
	both := object{"Days": users, "Fifo": object{"parameter": "fifo", "value": "false"}}
	fifo := func(text string) wrong { return yaml("!If [IsFifo, true, !Ref AWS::NoValue]", text) }
	const table = "  T:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      "
	cases := map[string]struct {
		more wrong
		want []string
	}{
		"Condition":  {nil, []string{"fifo"}},
		"Ref":        {fifo("!Ref Fifo"), []string{"fifo"}},
		"Sub":        {fifo(`!Sub "${Fifo}"`), []string{"fifo"}},
		"Select":     {fifo(`!Select [0, !Split [",", !Ref Fifo]]`), []string{"fifo"}},
		"Changeable": {each(fifo("true"), yaml("SqsManagedSseEnabled: true", "DelaySeconds: !If [IsFifo, 1, 2]")), nil},
		"OfResource": {each(fifo("true"), yaml("    Properties:", "    Condition: IsFifo\n    Properties:"),
			setting("credentials", nil), setting("proof", nil), with("policy.json", "${QueueArn}", "arn:aws:sqs:::x")),
			[]string{"fifo"}},
		"InDepth": {each(more(table+"KeySchema: [{AttributeName: !Ref Fifo, KeyType: HASH}]\n"), tables, fifo("true")),
			[]string{"fifo"}},
		"OfAnother": {each(more(table+"ImportSourceSpecification: !GetAtt Queue.Arn\n"), tables), []string{"fifo"}},
		"OfCustom": {each(more(table+"ImportSourceSpecification: !GetAtt C.X\n  C: {Type: Custom::C, "+
			"Properties: {ServiceToken: x, ServiceTimeout: 60, X: !Ref Days}}\n"), tables), []string{"fifo", "retention_days"}},
		"HoldsNothing": {each(fifo("true"),
			more("  A: {Type: AWS::KMS::Alias, Properties: {AliasName: !Sub \"alias/${AWS::StackName}\", TargetKeyId: "+
				"!Ref Days}}\n"), rights("kms:CreateAlias", "kms:DeleteAlias")), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { expect.Same(t, "what stays fixed", c.want, sourced(t, both, c.more).Fixed) })
	}
}

var tables = rights("dynamodb:CreateTable", "dynamodb:DeleteTable")

// An instance moves between plans as long as what it is made of stays: whatever can
// change in place may differ, and resources may be added.
func TestMoves(t *testing.T) {
	of := func(fifo any, more ...wrong) plan.Settings {
		return sourced(t, object{"Days": object{"value": 4}, "Fifo": object{"value": fifo}}, more...)
	}
	standard := of(false)
	const another = "  Dead: {Type: AWS::SQS::Queue, Properties: {SqsManagedSseEnabled: true}}\n"
	const policy = "  Policy: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Queue], PolicyDocument: {}}}\n"
	open := sourced(t, object{"Days": object{"value": 4}, "Fifo": object{"parameter": "fifo", "value": "false"}})
	opposite := sourced(t, object{"Days": object{"value": 4}, "Fifo": object{"parameter": "fifo", "value": "true"}})
	cases := map[string]struct {
		from, to plan.Settings
		want     bool
	}{
		"Same": {standard, of("false"), true},
		"Fifo": {standard, of(true), false},
		"Days": {standard, sourced(t, object{"Days": object{"value": 5}, "Fifo": object{"value": false}}), true},
		"WrittenElse": {standard, of(false, yaml("!If [IsFifo, true, !Ref AWS::NoValue]",
			"!If [IsFifo, \"\", !Ref AWS::NoValue]")), true},
		"More":             {standard, of(false, more(another)), true},
		"Less":             {of(false, more(another)), standard, false},
		"LessThatHolds":    {of(false, more(policy)), standard, true},
		"OtherLogicalID":   {of(false, more(another)), of(false, more(strings.Replace(another, "Dead", "Gone", 1))), false},
		"UsersToOperators": {open, standard, false},
		"AnotherDefault":   {open, opposite, false},
		"AnotherCondition": {of(false, more(strings.Replace(another, "Queue,", "Queue, Condition: IsFifo,", 1))), standard, true},
		"WithThatCondition": {of(true, more(strings.Replace(another, "Queue,", "Queue, Condition: IsFifo,", 1))), of(true),
			false},
	}
	for name, c := range cases {
		if got := c.from.To(c.to.Change); got != c.want {
			t.Errorf("%s: moves %v, want %v: from %q to %q", name, got, c.want, c.from.Shape, c.to.Shape)
		}
	}
}
