package principal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/principaltest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The fake refuses what AWS's documentation says that it refuses, and no emulator does.
func TestTheFakeHasLimits(t *testing.T) {
	ctx, clock := t.Context(), providertest.NewClock(time.Now())
	fake := principaltest.New("000000000001", clock.Now)
	fake.Quota = 2
	c := fake.Client(&providertest.Calls{})
	user := principal.Wanted{Name: "user", Path: "/a/", Boundary: "arn"}
	with := func(change func(*principal.Wanted)) error {
		w := user
		w.Name = "other"
		change(&w)
		return c.Create(ctx, plan.User, w)
	}
	var many []label.Label
	for n := range 51 {
		many = append(many, label.Label{Name: fmt.Sprint("tag-", n), Value: "x"})
	}
	key := func() error { _, err := c.CreateKey(ctx, "user"); return err }
	document := func(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }
	for _, tc := range []struct {
		reason string
		err    error
		want   awserr.Class
	}{
		{"a boundary is needed", with(func(w *principal.Wanted) { w.Boundary = "" }), awserr.Denied},
		{"a name has 64 characters", with(func(w *principal.Wanted) { w.Name = strings.Repeat("x", 65) }), awserr.Invalid},
		{"a path ends in a slash", with(func(w *principal.Wanted) { w.Path = "/a" }), awserr.Invalid},
		{"50 tags", with(func(w *principal.Wanted) { w.Tags = many }), awserr.Quota},
		{"the value of a tag has 256 characters", with(func(w *principal.Wanted) {
			w.Tags = []label.Label{{Name: "a", Value: strings.Repeat("x", 257)}}
		}), awserr.Invalid},
		{"a tag has few letters", with(func(w *principal.Wanted) { w.Tags = []label.Label{{Name: "a", Value: "b&c"}} }),
			awserr.Invalid},
		{"a user is made", c.Create(ctx, plan.User, user), awserr.None},
		{"and another one", with(func(*principal.Wanted) {}), awserr.None},
		{"users have a quota", with(func(w *principal.Wanted) { w.Name = "third" }), awserr.Quota},
		{"a first key", key(), awserr.None},
		{"a second one", key(), awserr.None},
		{"a user has two keys", key(), awserr.Quota},
		{"a policy of 2 000 bytes", c.PutPolicy(ctx, plan.User, "user", "p", document(2000)), awserr.None},
		{"it is put again", c.PutPolicy(ctx, plan.User, "user", "p", document(2048)), awserr.None},
		{"all policies have 2 048 bytes", c.PutPolicy(ctx, plan.User, "user", "q", document(3)), awserr.Quota},
		{"white space does not count", c.PutPolicy(ctx, plan.User, "user", "p", " \n\t"+document(2048)), awserr.None},
		{"keys and policies go first", c.Delete(ctx, plan.User, "user"), awserr.Busy},
	} {
		if got := awserr.Of(tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q (%v)", tc.reason, got, tc.want, tc.err)
		}
	}
	if most := plan.PolicyLimit(plan.User) + plan.PolicyLimit(plan.Role); most >= 2048+10240 {
		t.Errorf("policies of %d bytes leave no room for a quarantine", most)
	}
}
