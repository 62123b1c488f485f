package iampolicy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
)

// Parse refuses members that it does not know: one could be a condition that holds an attack back.
func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"Operator": {
			`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"IpAddres":{"aws:SourceIp":"::1"}}}]}`,
			"IpAddres"},
		"Member":    {`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Conditions":{}}]}`, "statements"},
		"Principal": {`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}]}`, "statements"},
		"Effect":    {`{"Statement":[{"Effect":"allow","Action":"*","Resource":"*"}]}`, "effect"},
		"Action":    {`{"Statement":[{"Effect":"Allow","Resource":"*"}]}`, "Action"},
		"Resource":  {`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","NotResource":"*"}]}`, "Resource"},
		"Value":     {`{"Statement":[{"Effect":"Allow","Action":[{}],"Resource":"*"}]}`, "text"},
	} {
		if _, err := iampolicy.Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// The operators are those that AWS knows.
func TestOperators(t *testing.T) {
	for operator, known := range map[string]bool{
		"StringEquals": true, "stringNotLikeIfExists": true, "ForAnyValue:ArnLike": true,
		"ForAllValues:StringEqualsIgnoreCase": true,
		"IpAddress":                           true, "DateLessThanEquals": true, "Null": true, "Bool": true,
		"NullIfExists": false, "NotBool": false, "StringEqualsNot": false, "ForSome:Bool": false, "": false,
	} {
		text := fmt.Sprintf(`{"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{%q:{"a":"b"}}}}`, operator)
		if _, err := iampolicy.Parse([]byte(text)); (err == nil) != known {
			t.Errorf("%q: %v", operator, err)
		}
	}
}
