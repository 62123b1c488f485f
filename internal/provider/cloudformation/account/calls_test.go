package account_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/test/expect"
)

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
