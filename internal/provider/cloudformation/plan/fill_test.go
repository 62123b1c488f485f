package plan_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestFill(t *testing.T) {
	values := map[string]string{"Name": "queue", "AWS::Region": "eu-west-1", "Loop": "${Name}"}
	for name, tc := range map[string]struct {
		text, want string
		fails      bool
	}{
		"Plain":        {text: "$5 {Name}", want: "$5 {Name}"},
		"Values":       {text: "a ${Name}, b ${AWS::Region}/${Name}", want: "a queue, b eu-west-1/queue"},
		"IAMsOwn":      {text: "${aws:username} ${*}${?}${$}", want: "${aws:username} ${*}${?}${$}"},
		"NotReadAgain": {text: "${Loop}", want: "${Name}"},
		"Unknown":      {text: "${Other}", fails: true},
		"UnknownOfAWS": {text: "${AWS::StackName}", fails: true},
		"Open":         {text: "${Name", fails: true},
		"Empty":        {text: "${}", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.Fill(tc.text, values)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %q and error %v, want %q", got, err, tc.want)
			}
		})
	}
	expect.Same(t, "names", []string{"Name", "AWS::Region"}, plan.Names("${Name}${aws:x}${AWS::Region} ${open"))
}

func TestPlaceLabels(t *testing.T) {
	got := plan.PlaceLabels(provider.Place{Organization: "Müller & Söhne\n", InstanceName: "aws:" + strings.Repeat("x", 300)})
	want := []label.Label{
		{Name: plan.LabelOrganization, Value: "Müller - Söhne-"},
		{Name: plan.LabelInstanceName, Value: "-aws:" + strings.Repeat("x", 124)},
	}
	expect.Same(t, "labels", want, got)
}

func TestFillPolicy(t *testing.T) {
	on := func(resource string) string {
		return `{"Statement":[{"Action":"s3:GetObject","Effect":"Allow","Resource":` + resource + `}]}`
	}
	for name, tc := range map[string]struct {
		reason, policy, value, want string
		fails                       bool
	}{
		"Plain": {reason: "a value stands where its name was", policy: on(`["arn:aws:s3:::${V}/*", "x"]`), value: "bucket",
			want: on(`["arn:aws:s3:::bucket/*","x"]`)},
		"BreaksOut": {reason: "a quote does not end the text", policy: on(`"${V}"`), value: `x","Action":"*`,
			want: on(`"x\",\"Action\":\"${*}"`)},
		"Patterns": {reason: "a value is no pattern", policy: on(`"a${V}"`), value: "*?x", want: on(`"a${*}${?}x"`)},
		"Variables": {reason: "a value is no variable of IAM", policy: on(`"${V}"`), value: "${aws:username}$",
			want: on(`"${$}{aws:username}${$}"`)},
		"IAMsOwn": {reason: "the plan's variables stay", policy: on(`"${aws:username}/${V}/${*}"`), value: "<&>",
			want: on(`"${aws:username}/<&>/${*}"`)},
		"Empty":   {reason: "what is empty could widen", policy: on(`"${V}*"`), fails: true},
		"Unknown": {reason: "there is no such value", policy: on(`"${W}"`), value: "x", fails: true},
		"InAName": {reason: "a value names no member", policy: `{"${V}":"x"}`, value: "Action", fails: true},
		"NoJSON":  {reason: "a policy is JSON", policy: `{"Statement":`, value: "x", fails: true},
		"Nothing": {reason: "a plan has a policy", value: "x", fails: true},
		"NumbersStay": {reason: "numbers keep their digits", policy: `{"N":9007199254740993, "B":true}`, value: "x",
			want: `{"B":true,"N":9007199254740993}`},
		"WithoutSpace": {reason: "white space is left out", policy: "{\n\t\"A\": [ 1 ]\n}", value: "x", want: `{"A":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.FillPolicy(plan.User, json.RawMessage(tc.policy), map[string]string{"V": tc.value})
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestPolicySizes(t *testing.T) {
	long := func(bytes int) json.RawMessage {
		return json.RawMessage(`{"V":"` + strings.Repeat("x", bytes-len(`{"V":""}`)) + `"}`)
	}
	for kind, most := range map[plan.Principal]int{plan.User: 1964, plan.Role: 10156} {
		if got := plan.PolicyLimit(kind); got != most {
			t.Errorf("the policy of a %s may have %d bytes, want %d", kind, got, most)
		}
		if err := plan.CheckPolicySize(kind, long(most)); err != nil {
			t.Errorf("a policy of %d bytes: %v", most, err)
		}
		if err := plan.CheckPolicySize(kind, long(most+1)); !errors.Is(err, plan.ErrPolicyTooLong) {
			t.Errorf("a policy of one byte more: %v, want %v", err, plan.ErrPolicyTooLong)
		}
	}
	// A value is as long as an ARN may be.
	ten := json.RawMessage(`{"V":"` + strings.Repeat("${Arn}", 10) + `"}`)
	if err := plan.CheckPolicySize("", ten); err != nil {
		t.Errorf("ten values: %v", err)
	}
	ten = json.RawMessage(`{"V":"` + strings.Repeat("${Arn}", 20) + `"}`)
	if err := plan.CheckPolicySize("", ten); !errors.Is(err, plan.ErrPolicyTooLong) {
		t.Errorf("twenty values: %v, want %v", err, plan.ErrPolicyTooLong)
	}
}

// CloudFormation compares texts: no number has an exponent, whether an order gives it or the settings
// of a plan, which are read as floats.
func TestNumbers(t *testing.T) {
	for want, v := range map[string]any{
		"1000000": 1e6, "123456789": json.Number("1.23456789e8"), "4": 4.0, "0.00001": 1e-5, "21000000,-2.5": []any{2.1e7, -2.5},
	} {
		if got, why := plan.Text(v); got != want || why != "" {
			t.Errorf("%v is %q, want %q; %s", v, got, want, why)
		}
	}
}
