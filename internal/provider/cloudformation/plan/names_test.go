package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestObjectURL(t *testing.T) {
	local := "http://localhost:4566/"
	for want, c := range map[string]struct {
		at       plan.Location
		endpoint *string
	}{
		"https://b.s3.eu-central-1.amazonaws.com/k":  {plan.Location{Partition: "aws", Region: "eu-central-1"}, nil},
		"https://b.s3.us-gov-west-1.amazonaws.com/k": {plan.Location{Partition: "aws-us-gov", Region: "us-gov-west-1"}, nil},
		"https://b.s3.cn-north-1.amazonaws.com.cn/k": {plan.Location{Partition: "aws-cn", Region: "cn-north-1"}, nil},
		"http://localhost:4566/b/k":                  {plan.Location{Partition: "aws", Region: "us-east-1"}, &local},
	} {
		expect.Same(t, fmt.Sprintf("%+v", c.at), want, c.at.ObjectURL(c.endpoint, "b", "k"))
	}
}

// The names of stacks of one space begin alike, and no other name begins so.
func TestSpacesAreApart(t *testing.T) {
	scope := plan.ScopeOf("a broker")
	in := provider.Instance{Broker: "b", Platform: "p", ID: "i", Incarnation: "1",
		Place: provider.Place{Organization: "o", Space: "s"}}
	own := plan.SpaceOf(in)
	sibling := in
	sibling.ID, sibling.Incarnation, sibling.Place.InstanceName = "j", "2", "another"
	if plan.SpaceOf(sibling) != own {
		t.Error("two instances of one space have other letters")
	}
	for name, change := range map[string]func(*provider.Instance){
		"Broker":       func(in *provider.Instance) { in.Broker = "c" },
		"Platform":     func(in *provider.Instance) { in.Platform = "q" },
		"Organization": func(in *provider.Instance) { in.Place.Organization = "n" },
		"Space":        func(in *provider.Instance) { in.Place.Space = "t" },
		"Shifted":      func(in *provider.Instance) { in.Platform, in.Place.Organization = "", "po" },
		"Quoted":       func(in *provider.Instance) { in.Platform, in.Place.Organization = `p" "o`, "" },
		"Nowhere":      func(in *provider.Instance) { in.Place.Space = "" },
		"NowhereElse":  func(in *provider.Instance) { in.ID, in.Place = "k", provider.Place{} },
	} {
		other := in
		change(&other)
		if got := plan.SpaceOf(other); len(got) != len(own) || got == own {
			t.Errorf("%s: its letters are %q, and those of the space are %q", name, got, own)
		}
	}
	tags := provider.TagsOf(in)
	stack := scope.Stack(tags, own)
	if len(stack) != 56 || len(stack+"-dead-letters.fifo") > 80 || !strings.HasPrefix(stack, scope.SpacePrefix(own)) {
		t.Errorf("the stack is called %q", stack)
	}
	for name, is := range map[string]bool{
		stack: true, scope.Stack(tags, "elsewhere"[:8]): true, stack + "-Nested-1": false, stack[:len(stack)-1]: false,
		scope.Stack(provider.TagsOf(sibling), own): false, plan.ScopeOf("other").Stack(tags, own): false, "": false,
		scope.Stacks() + "x": false,
	} {
		if space, got := scope.SpaceIn(name, tags); got != is || is && scope.Stack(tags, space) != name {
			t.Errorf("%q is the name of the instance's stack: %v, in %q", name, got, space)
		}
	}
}
