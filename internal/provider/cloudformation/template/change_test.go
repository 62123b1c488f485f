package template_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

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
		t.Run(name, func(t *testing.T) {
			expect.Same(t, "what stays fixed", c.want, sourced(t, both, c.more).Fixed)
		})
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
