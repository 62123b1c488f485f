package bootstrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// Targets are read from JSON and from a file alike, and the broker's own account is always among them.
func TestTargetsOfAWSAreRead(t *testing.T) {
	const text = `{"targets": {
	"default": {"vpc": "vpc-01234567", "subnets": ["subnet-01234567"], "cidrs": ["10.0.0.0/16", "2001:db8::/32"]},
	"production": {"account": "210987654321", "region": "eu-central-1", "external_id": "of-ours",
		"role": "arn:aws:iam::210987654321:role/longshore/x"}},
	"rules": [{"plan": "s3/large", "target": "production"}, {"platform": "korifi", "target": "default"}]}`
	want := plan.Targets{
		Targets: map[string]plan.Target{
			"default": {VPC: "vpc-01234567", Subnets: []string{"subnet-01234567"},
				CIDRs: []string{"10.0.0.0/16", "2001:db8::/32"}},
			"production": {Account: "210987654321", Region: "eu-central-1", ExternalID: "of-ours",
				Role: "arn:aws:iam::210987654321:role/longshore/x"},
		},
		Rules: []plan.TargetRule{{Plan: "s3/large", Target: "production"}, {Platform: "korifi", Target: "default"}},
	}
	file := filepath.Join(t.TempDir(), "targets.json")
	expect.OK(t, os.WriteFile(file, []byte("\ufeff"+text), 0o600)) // as editors on Windows write it
	for what, given := range map[string]string{"Text": text, "File": file, "OwnWords": want.String()} {
		expect.Same(t, what, want, expect.Get(ParseTargets("TARGETS", given))(t, what))
	}
	if got, err := ParseTargets("TARGETS", ""); err != nil || len(got.Targets) != 1 {
		t.Errorf("without targets: %v, %v", got, err)
	}
}

// A wrong target is refused with its place and what to do.
func TestWrongTargetsAreRefused(t *testing.T) {
	target := func(members string) string { return `{"targets": {"other": {` + members + `}}}` }
	const role = `"role": "arn:aws:iam::210987654321:role/x", "external_id": "e-1"`
	for _, c := range []struct {
		text string
		want []string
	}{
		{"/nowhere/targets.json", []string{"/nowhere/targets.json", "cannot be read"}},
		{"{", []string{"TARGETS", "JSON of the expected form"}},
		{"{} {}", []string{"something follows"}},
		{target(`"acount": "210987654321"`), []string{"acount", `"external_id"`}},
		{`{"targets": {"Other One": {}}}`, []string{`"Other One"`, "lower-case"}},
		{target(`"account": "12", ` + role), []string{`target "other"`, `account is "12"`, "12 digits"}},
		{target(`"region": "Frankfurt"`), []string{`region is "Frankfurt"`}},
		{target(`"role": "Administrator", "external_id": "e-1"`), []string{`role is "Administrator"`, "whole ARN"}},
		{target(`"role": "arn:aws:iam::210987654321:role/x"`), []string{"without an external id"}},
		{target(`"account": "210987654321"`), []string{"account is given without a role"}},
		{target(`"external_id": "e-1"`), []string{"external_id is given without a role"}},
		{target(`"account": "111111111111", ` + role), []string{"is of account 210987654321"}},
		{target(`"vpc": "main"`), []string{`vpc is "main"`}},
		{target(`"subnets": ["a"]`), []string{`subnets is "a"`}},
		{target(`"cidrs": ["10.0.0.1/16"]`), []string{`cidrs has "10.0.0.1/16"`}},
		{`{"targets": {"default": {"region": "eu-west-1"}}}`, []string{"the broker itself works"}},
		{`{"targets": {"other": {}}, "rules": [{"target": "othr"}]}`, []string{"rule 1", `mean "other"`}},
		{`{"rules": [{"plan": "s3", "target": "default"}]}`, []string{`plan "s3"`, "OFFERING/PLAN"}},
		{`{"targets": {"a": {"vpc": "x"}, "b": {"region": "y"}}}`, []string{`target "a"`, `target "b"`}},
	} {
		t.Run(c.text, func(t *testing.T) {
			expect.Says(t, "the error", fmt.Sprint(expect.Err(ParseTargets("TARGETS", c.text))), c.want...)
		})
	}
}

// A target without a role is another region of the broker's own account.
func TestRightsFollowTargets(t *testing.T) {
	o := account.OptionsFor(plan.Targets{Targets: map[string]plan.Target{
		"default": {VPC: "vpc-1"}, "west": {Region: "us-west-2"}, "west-too": {Region: "us-west-2"},
		"far": {Role: "r", Region: "eu-west-1"},
	}})
	if !slices.Equal(o.Access, []string{"r"}) || !slices.Equal(o.Regions, []string{"us-west-2"}) {
		t.Errorf("the broker may %+v", o)
	}
}
