package account_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/expect"
)

// However many targets a broker has, its rights fit into policies that IAM takes, and all
// of them together say what one would.
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
