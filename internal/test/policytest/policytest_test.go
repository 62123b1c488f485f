package policytest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// with is a policy of one statement: effect, action and resource, then a condition as
// JSON, which may be empty.
func with(t testing.TB, effect, action, resource, condition string) iampolicy.Document {
	t.Helper()
	text := `{"Version":"2012-10-17","Statement":{"Effect":"` + effect + `","Action":"` + action + `","Resource":"` + resource +
		`"`
	if condition != "" {
		text += `,"Condition":` + condition
	}
	return parse(t, text+"}}")
}

func parse(t testing.TB, text string) iampolicy.Document {
	t.Helper()
	d, err := iampolicy.Parse([]byte(text))
	expect.OK(t, err)
	return d
}

const bucket = "arn:aws:s3:::box"

func TestAllows(t *testing.T) {
	get := policytest.Request{Action: "s3:GetObject", Resource: bucket + "/a/b", Context: map[string][]string{
		"aws:SecureTransport": {"true"}, "aws:PrincipalTag/team": {"a"}, "aws:username": {"a*"}, "aws:TagKeys": {"one", "two"},
		"aws:SourceArn": {"arn:aws:sns:eu-central-1:111122223333:topic"},
	}}
	all := func(condition string) iampolicy.Document { return with(t, "Allow", "*", "*", condition) }
	tests := map[string]struct {
		reason     string
		policies   []iampolicy.Document
		boundaries [][]iampolicy.Document
		want       bool
	}{
		"Nothing": {"nothing is allowed by itself", nil, nil, false},
		"Exact":   {"as it is", []iampolicy.Document{with(t, "Allow", "s3:GetObject", bucket+"/a/b", "")}, nil, true},
		"Case": {"the case of actions does not count", []iampolicy.Document{with(t, "Allow", "S3:getobject", "*", "")},
			nil, true},
		"CaseOfNames": {"that of resources does", []iampolicy.Document{with(t, "Allow", "s3:*", "arn:aws:s3:::Box/*", "")}, nil,
			false},
		"Slashes": {"a star crosses slashes", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/*", "")}, nil, true},
		"One": {"a question mark is one letter", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/?/b", "")}, nil,
			true},
		"OneOnly": {"and not two", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/a?/b", "")}, nil, false},
		"Stars":   {"several stars", []iampolicy.Document{with(t, "Allow", "s3:*", "arn:*:box*/*b", "")}, nil, true},
		"Deny":    {"a denial counts more", []iampolicy.Document{all(""), with(t, "Deny", "s3:Get*", "*", "")}, nil, false},
		"DenyOther": {"one of something else does not", []iampolicy.Document{all(""), with(t, "Deny", "s3:Put*", "*", "")}, nil,
			true},
		"Bounded": {"a boundary allows it too",
			[]iampolicy.Document{all("")}, [][]iampolicy.Document{{with(t, "Allow", "s3:*", "*", "")}}, true},
		"BeyondBounds": {"a boundary does not",
			[]iampolicy.Document{all("")}, [][]iampolicy.Document{{with(t, "Allow", "sqs:*", "*", "")}}, false},
		"BoundaryOnly": {"a boundary alone gives nothing", nil, [][]iampolicy.Document{{all("")}}, false},
		"BoundaryDeny": {"a boundary may deny", []iampolicy.Document{all("")},
			[][]iampolicy.Document{{all(""), with(t, "Deny", "s3:GetObject", "*", "")}}, false},
		"NotAction": {"all but this", []iampolicy.Document{
			parse(t, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","NotAction":"s3:Get*","Resource":"*"}]}`)}, nil,
			false},
		"NotResource": {"all but there", []iampolicy.Document{
			all(""),
			parse(t,
				`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"s3:*","NotResource":"arn:aws:s3:::box/c/*"}]}`)},
			nil, false},

		"Equals": {"a key has the value",
			[]iampolicy.Document{all(`{"StringEquals":{"aws:principaltag/team":["b","a"]}}`)}, nil, true},
		"EqualsNot": {"it has another", []iampolicy.Document{all(`{"StringEquals":{"aws:PrincipalTag/team":"b"}}`)}, nil,
			false},
		"Absent": {"a key that is not there", []iampolicy.Document{all(`{"StringEquals":{"aws:SourceVpc":"x"}}`)}, nil, false},
		"IfExists": {"where that is all right",
			[]iampolicy.Document{all(`{"StringEqualsIfExists":{"aws:SourceVpc":"x"}}`)}, nil, true},
		"NotEqualsAbsent": {"is not the value either", []iampolicy.Document{all(`{"StringNotEquals":{"aws:SourceVpc":"x"}}`)},
			nil, true},
		"NotEquals": {"none of several",
			[]iampolicy.Document{all(`{"StringNotEquals":{"aws:PrincipalTag/team":["b","a"]}}`)}, nil, false},
		"Both": {"all conditions hold",
			[]iampolicy.Document{all(`{"StringEquals":{"aws:PrincipalTag/team":"a"},"Bool":{"aws:SecureTransport":false}}`)}, nil,
			false},
		"Null":     {"a key is there", []iampolicy.Document{all(`{"Null":{"aws:PrincipalTag/team":"false"}}`)}, nil, true},
		"NullTrue": {"a key is not there", []iampolicy.Document{all(`{"Null":{"aws:PrincipalTag/team":"true"}}`)}, nil, false},
		"Like":     {"with a star", []iampolicy.Document{all(`{"StringLike":{"aws:SourceArn":"arn:aws:*:topic"}}`)}, nil, true},
		"ArnLike": {"a star of an ARN ends at a colon",
			[]iampolicy.Document{all(`{"ArnLike":{"aws:SourceArn":"arn:aws:*:topic"}}`)}, nil, false},
		"ArnParts": {"part by part",
			[]iampolicy.Document{all(`{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:111122223333:t*"}}`)}, nil, true},
		"Any": {"one of several values",
			[]iampolicy.Document{all(`{"ForAnyValue:StringEquals":{"aws:TagKeys":"two"}}`)}, nil, true},
		"All": {"all of them", []iampolicy.Document{all(`{"ForAllValues:StringEquals":{"aws:TagKeys":"two"}}`)}, nil,
			false},
		"AnyAbsent": {"none there", []iampolicy.Document{all(`{"ForAnyValue:StringEquals":{"aws:Other":"two"}}`)}, nil, false},
		"AllAbsent": {"none is there to break it",
			[]iampolicy.Document{all(`{"ForAllValues:StringEquals":{"aws:Other":"two"}}`)}, nil, true},

		"Variable": {"what is in a variable",
			[]iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/${aws:PrincipalTag/team}/b", "")}, nil, true},
		"VariableStar": {"is no pattern", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/${aws:username}/b", "")}, nil,
			false},
		"VariableUnset": {"has no value", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/${aws:userid}*", "")}, nil,
			false},
		"VariableElse": {"has another for that",
			[]iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/${aws:userid, 'a'}/b", "")}, nil, true},
		"Letter": {"a star that is a letter", []iampolicy.Document{with(t, "Allow", "s3:*", bucket+"/${*}", "")}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect.Same(t, fmt.Sprintf("%s: allowed", test.reason), test.want,
				policytest.Allows(get, test.policies, test.boundaries...))
		})
	}
}

// An unknown operator fails a test: it could be the one that holds an attack back.
func TestUnknownOperators(t *testing.T) {
	for _, operator := range []string{"IpAddress", "NumericEquals", "BinaryEquals", "DateLessThan"} {
		func() {
			defer func() {
				if said := recover(); said == nil || !strings.Contains(said.(string), operator) {
					t.Errorf("%s: it panics with %v", operator, said)
				}
			}()
			policytest.Allows(policytest.Request{Action: "s3:GetObject", Resource: bucket},
				[]iampolicy.Document{with(t, "Allow", "*", "*", `{"`+operator+`":{"aws:SourceIp":"::1"}}`)})
		}()
	}
}
