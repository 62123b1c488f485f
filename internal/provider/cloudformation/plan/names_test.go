package plan_test

import (
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

func TestObjectURL(t *testing.T) {
	local := "http://localhost:4566/"
	for want, c := range map[string]struct {
		at       plan.Place
		endpoint *string
	}{
		"https://b.s3.eu-central-1.amazonaws.com/k":  {plan.Place{Partition: "aws", Region: "eu-central-1"}, nil},
		"https://b.s3.us-gov-west-1.amazonaws.com/k": {plan.Place{Partition: "aws-us-gov", Region: "us-gov-west-1"}, nil},
		"https://b.s3.cn-north-1.amazonaws.com.cn/k": {plan.Place{Partition: "aws-cn", Region: "cn-north-1"}, nil},
		"http://localhost:4566/b/k":                  {plan.Place{Partition: "aws", Region: "us-east-1"}, &local},
	} {
		if got := c.at.ObjectURL(c.endpoint, "b", "k"); got != want {
			t.Errorf("%+v: got %q, want %q", c.at, got, want)
		}
	}
}
