package account_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if cmp.Equal(real, emulated) {
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
		expect.Never(t, id, string(expect.Get(json.Marshal(r))(t)), "${Prefix}", place.Account)
	}
	slices.Sort(kinds)
	want := []string{"AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::IAM::Role", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}
	expect.Same(t, "resources", want, kinds)
}

// IAM refuses what is larger: it is said before anything is made.
func TestPoliciesFit(t *testing.T) {
	wide := queue(t)
	wide.Permissions[0].Statement[0].Action = slices.Repeat(iampolicy.Texts{"sqs:ReceiveMessage"}, 800)
	if _, err := account.Resources(scope, []account.Offering{wide}, account.Options{}); err == nil ||
		!strings.Contains(err.Error(), "10240") {
		t.Errorf("permissions that are too large: %v", err)
	}
}

func TestAccessNeedsAnExternalID(t *testing.T) {
	open := account.Trust{Principals: trust.Principals}
	if _, err := account.Resources(scope, nil, account.Options{Trust: &open}); err == nil {
		t.Error("a role that anybody may have taken for him was made")
	}
}
