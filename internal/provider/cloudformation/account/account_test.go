package account_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/expect"
)

var trust = account.Trust{Principals: []string{"arn:aws:iam::222233334444:role/broker"}, ExternalID: "x"}

// For an emulator three condition keys are left out, and nothing else differs.
func TestEmulatorsGetThreeConditionsLess(t *testing.T) {
	without := func(all []iampolicy.Statement) []iampolicy.Statement {
		for i := range all {
			for operator, keys := range all[i].Condition {
				for _, key := range account.UnknownKeys {
					delete(keys, key)
				}
				if len(keys) == 0 {
					delete(all[i].Condition, operator)
				}
			}
			if len(all[i].Condition) == 0 {
				all[i].Condition = nil
			}
		}
		return all
	}
	real, emulated := account.Rights(scope, account.Options{}), account.Rights(scope, account.Options{Emulated: true})
	if reflect.DeepEqual(real, emulated) {
		t.Fatal("nothing differs")
	}
	expect.Same(t, fmt.Sprintf("what differs more than the keys %q", account.UnknownKeys), without(real), emulated)
	resources := func(emulated bool) map[string]account.Resource {
		all := expect.Get(account.Resources(scope, []account.Offering{queue(t)},
			account.Options{Trust: &trust, Emulated: emulated}))(t)
		delete(all, "AccessRole") // which holds the rights
		return all
	}
	expect.Same(t, "the resources, real and emulated", resources(false), resources(true))
}

// The resources that an instance may need outlive its offering and the stack that made them.
func TestEverythingIsKept(t *testing.T) {
	all := expect.Get(account.Resources(scope, []account.Offering{queue(t)}, account.Options{Trust: &trust}))(t)
	var kinds []string
	for id, r := range all {
		kinds = append(kinds, r.Type)
		if r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s goes with its template", id)
		}
		text := string(expect.Get(json.Marshal(r))(t))
		expect.Never(t, id, text, place.Account)
		expect.Same(t, id+": names without a value", 0, strings.Count(text, "${")-strings.Count(text, "${AWS::"))
	}
	slices.Sort(kinds)
	want := []string{"AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::IAM::Role", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}
	expect.Same(t, "resources", want, kinds)
}

// IAM refuses larger policies, and a role without an external id could be taken by anybody: it is said before anything is made.
func TestResourcesAreRefused(t *testing.T) {
	wide := queue(t)
	wide.Permissions[0].Statement[0].Action = slices.Repeat(iampolicy.Texts{"sqs:ReceiveMessage"}, 800)
	if _, err := account.Resources(scope, []account.Offering{wide}, account.Options{}); err == nil ||
		!strings.Contains(err.Error(), "10240") {
		t.Errorf("permissions that are too large: %v", err)
	}
	open := account.Trust{Principals: trust.Principals}
	if _, err := account.Resources(scope, nil, account.Options{Trust: &open}); err == nil {
		t.Error("a role that anybody may have taken for him was made")
	}
}

// IAM refuses a policy that has a Sid twice. Files of permissions may have the same ones, and those of the guards.
func TestAServiceRoleHasEachSidOnce(t *testing.T) {
	o := queue(t)
	for _, sid := range []string{"Queues", "Queues", "Templates", "OtherSecrets"} {
		d := queue(t).Permissions[0]
		d.Statement[0].Sid = sid
		o.Permissions = append(o.Permissions, d)
	}
	all, sids := account.ServiceRights(scope, o), map[string]int{}
	for _, s := range all {
		if sids[s.Sid]++; s.Sid != "" && sids[s.Sid] > 1 {
			t.Errorf("%q is the Sid of two statements", s.Sid)
		}
	}
	expect.Same(t, "statements of permissions", 2*len(o.Permissions), sids[""])
	expect.Same(t, "guards with a Sid", len(all)-sids[""], len(sids)-1)
}

// However many targets a broker has, its rights fit into policies that IAM takes, and all of them together say what one would.
func TestRightsInParts(t *testing.T) {
	for _, targets := range []int{0, 4, 90} {
		var o account.Options
		for n := range targets {
			o.Access = append(o.Access,
				fmt.Sprintf("arn:aws:iam::%012d:role/longshore-fixed/longshore-abcdefgh-a-ap-southeast-%d", n, n))
			if n < 12 {
				o.Regions = append(o.Regions, fmt.Sprintf("ap-southeast-%d", n))
			}
		}
		all := account.Fill(account.Rights(scope, o), place)
		parts := account.Parts(all)
		if (len(parts) == 1) != (targets == 0) {
			t.Errorf("%d targets: %d parts", targets, len(parts))
		}
		var got []iampolicy.Statement
		for i, d := range parts {
			raw, err := json.Marshal(d)
			if err != nil || len(raw) > 6144 {
				t.Errorf("%d targets: part %d has %d bytes: error %v", targets, i+1, len(raw), err)
			}
			got = append(got, d.Statement...)
			var sids []string
			for _, s := range d.Statement {
				sids = append(sids, s.Sid)
			}
			if slices.Sort(sids); len(slices.Compact(slices.Clone(sids))) != len(sids) {
				t.Errorf("%d targets: part %d has a Sid twice, which IAM refuses: %q", targets, i+1, sids)
			}
		}
		expect.Same(t, fmt.Sprintf("%d targets: the parts say something else", targets), said(all), said(got))
	}
}

// said is each action that statements are about, on each resource, under its condition.
func said(all []iampolicy.Statement) (one []string) {
	for _, s := range all {
		for _, action := range s.Action {
			for _, resource := range s.Resource {
				one = append(one, strings.Join([]string{s.Effect, action, resource, fmt.Sprint(s.Condition)}, " "))
			}
		}
	}
	slices.Sort(one)
	return one
}

// input is how a call of AWS's SDK is written.
var input = regexp.MustCompile(`\b(cfn|iam|s3|sqs|dynamodb|sts|tagging|kinesis|events)\.([A-Z][A-Za-z]+)Input\{`)

// A call that the provider makes and nobody has granted would be found out on AWS
// alone: an emulator lets most pass. And a right that nothing needs is one too many.
func TestRightsAreThoseOfTheCalls(t *testing.T) {
	services := map[string]string{"cfn": "cloudformation", "tagging": "tag"}
	// Actions that are called otherwise, or belong to other calls.
	named := map[string][]string{
		"s3:ListObjectVersions": {"s3:ListBucketVersions"}, "s3:DeleteObjects": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
		"cloudformation:CreateStack": {"cloudformation:CreateStack", "cloudformation:TagResource", "iam:PassRole"},
		"cloudformation:UpdateStack": {"cloudformation:UpdateStack", "cloudformation:UntagResource"},
		"s3:GetObject":               {"s3:GetObject", "s3:ListBucket"}, // so that what is absent is told from what is forbidden
		"iam:GetUser":                {"iam:GetUser", "iam:ListUserTags"},
		"iam:GetRole":                {"iam:GetRole", "iam:ListRoleTags"},
		"tag:TagResources": {"tag:TagResources", "dynamodb:TagResource", "kinesis:AddTagsToStream", "s3:GetBucketTagging",
			"s3:PutBucketTagging", "secretsmanager:TagResource", "sqs:TagQueue"},
		"sts:GetCallerIdentity":             {}, // which everybody may
		"iam:RemoveUserFromGroup":           {}, // groups and instance profiles are the operator's own, who puts nobody into them
		"iam:RemoveRoleFromInstanceProfile": {},
	}
	granted, needed := map[string]bool{}, map[string]bool{}
	for _, s := range account.Rights(scope, account.Options{Access: []string{"arn:aws:iam::222233334444:role/x"}}) {
		for _, action := range s.Action {
			granted[action] = true
		}
	}
	for _, folder := range []string{"..", "../principal"} {
		for _, path := range expect.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text := expect.Get(os.ReadFile(path))(t)
			for _, m := range input.FindAllStringSubmatch(string(text), -1) {
				action := cmp.Or(services[m[1]], m[1]) + ":" + m[2]
				actions, special := named[action]
				if !special {
					actions = []string{action}
				}
				for _, a := range actions {
					if needed[a] = true; !granted[a] {
						t.Errorf("%s calls %s, which nobody has granted", path, a)
					}
				}
			}
		}
	}
	needed["sts:AssumeRole"] = true // by the SDK itself
	maps.DeleteFunc(granted, func(action string, _ bool) bool { return needed[action] })
	if len(granted) > 0 {
		t.Errorf("nothing needs %q", slices.Sorted(maps.Keys(granted)))
	}
	if len(needed) < 40 {
		t.Errorf("only %d calls were found", len(needed))
	}
}
