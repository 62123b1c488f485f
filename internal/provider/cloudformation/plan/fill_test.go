package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestFill(t *testing.T) {
	values := map[string]string{"Name": "queue", "AWS::Region": "eu-west-1", "Loop": "${Name}"}
	for text, want := range map[string]string{ // empty for a failure
		"$5 {Name}": "$5 {Name}", "a ${Name}, b ${AWS::Region}/${Name}": "a queue, b eu-west-1/queue",
		"${aws:username} ${*}${?}${$}": "${aws:username} ${*}${?}${$}", // IAM's own
		"${Loop}":                      "${Name}",                      // it is not read again
		"${Other}":                     "", "${AWS::StackName}": "", "${Name": "", "${}": "",
	} {
		got, err := plan.Fill(text, values)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q and error %v, want %q", text, got, err, want)
		}
	}
	expect.Same(t, "names", []string{"Name", "AWS::Region"}, plan.Names("${Name}${aws:x}${AWS::Region} ${open"))
}

func TestPlaceLabels(t *testing.T) {
	got := plan.PlaceLabels(provider.Place{Organization: "Müller & Söhne\n", InstanceName: "aws:" + strings.Repeat("x", 300)})
	want := []label.Label{
		{Name: "longshore:organization", Value: "Müller - Söhne-"},
		{Name: "longshore:instance-name", Value: "-aws:" + strings.Repeat("x", 124)},
	}
	expect.Same(t, "labels", want, got)
}

func TestFillPolicy(t *testing.T) {
	on := func(resource string) string {
		return `{"Statement":[{"Action":"s3:GetObject","Effect":"Allow","Resource":` + resource + `}]}`
	}
	for _, c := range []struct{ reason, policy, value, want string }{
		{"a value stands where its name was", on(`["arn:aws:s3:::${V}/*", "x"]`), "bucket", on(`["arn:aws:s3:::bucket/*","x"]`)},
		{"a quote does not end the text", on(`"${V}"`), `x","Action":"*`, on(`"x\",\"Action\":\"${*}"`)},
		{"a value is no pattern", on(`"a${V}"`), "*?x", on(`"a${*}${?}x"`)},
		{"a value is no variable of IAM", on(`"${V}"`), "${aws:username}$", on(`"${$}{aws:username}${$}"`)},
		{"the plan's variables stay", on(`"${aws:username}/${V}/${*}"`), "<&>", on(`"${aws:username}/<&>/${*}"`)},
		{"what is empty could widen", on(`"${V}*"`), "", ""},
		{"there is no such value", on(`"${W}"`), "x", ""},
		{"a value names no member", `{"${V}":"x"}`, "Action", ""},
		{"a policy is JSON", `{"Statement":`, "x", ""},
		{"a plan has a policy", "", "x", ""},
		{"numbers keep their digits", `{"N":9007199254740993, "B":true}`, "x", `{"B":true,"N":9007199254740993}`},
		{"white space is left out", "{\n\t\"A\": [ 1 ]\n}", "x", `{"A":[1]}`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, err := plan.FillPolicy(plan.User, json.RawMessage(c.policy), map[string]string{"V": c.value})
			expect.Same(t, "the policy", c.want, got)
			expect.Same(t, fmt.Sprintf("whether it fails (%v)", err), c.want == "", err != nil)
		})
	}
}

func TestPolicySizes(t *testing.T) {
	long := func(bytes int) json.RawMessage {
		return json.RawMessage(`{"V":"` + strings.Repeat("x", bytes-len(`{"V":""}`)) + `"}`)
	}
	for kind, most := range map[plan.Principal]int{plan.User: 1964, plan.Role: 10156} {
		expect.Same(t, fmt.Sprintf("the bytes that the policy of a %s may have", kind), most, plan.PolicyLimit(kind))
		expect.Fails(t, "a policy of so many", nil, plan.CheckPolicySize(kind, long(most)))
		expect.Fails(t, "a policy of one byte more", plan.ErrPolicyTooLong, plan.CheckPolicySize(kind, long(most+1)))
	}
	// A value is as long as an ARN may be.
	arns := func(n int) json.RawMessage { return json.RawMessage(`{"V":"` + strings.Repeat("${Arn}", n) + `"}`) }
	expect.Fails(t, "ten values", nil, plan.CheckPolicySize("", arns(10)))
	expect.Fails(t, "twenty values", plan.ErrPolicyTooLong, plan.CheckPolicySize("", arns(20)))
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
