package template_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// existing is a plan of a queue that is there already.
func existing(names object) check.Plan {
	checked := queue()
	checked.Offering, checked.Settings = "shared", object{
		"existing": names, "credentials": object{"queue_url": "${Url}"}, "proof": object{"service": "sqs", "body": "{}"},
	}
	checked.Files = fstest.MapFS{"policy.json": {Data: []byte(strings.Replace(queuePolicy, "QueueArn", "Arn", 1))}}
	return checked
}

// A plan of what exists has neither template nor permissions, and a binding's texts have the values that name it.
func TestExisting(t *testing.T) {
	got := settingsOf(t, existing(object{"exports": object{"Url": "my-url", "Arn": "my-arn"}}))
	want := plan.Settings{
		Change: check.Change{Shape: "existing"},
		Format: plan.Format, Offering: "shared", Credentials: map[string]string{"queue_url": "${Url}"}, Policy: got.Policy,
		Principal: plan.User, Proof: &plan.Proof{Service: "sqs", Body: "{}"},
		Existing: &plan.Existing{Exports: map[string]string{"Url": "my-url", "Arn": "my-arn"}},
	}
	expect.Same(t, "settings", want, got)

	made := settingsOf(t, queue()).Change
	if to := got.Change; made.To(to) || to.To(made) || !to.To(want.Change) {
		t.Errorf("between %q and %q, an instance is moved", made.Shape, to.Shape)
	}

	bare := setting("credentials", nil)
	both := object{"exports": object{"Url": "u", "Arn": "a"}}
	cases := map[string]struct {
		names object
		do    wrong
		want  string
	}{
		"Tag":    {object{"tag": "shared=yes", "type": "sqs:queue"}, setting("credentials", object{"queue_url": "${Name}"}), ""},
		"NoName": {object{}, nil, "existing does not name one resource …"},
		"Both": {object{"exports": object{"Url": "u"}, "tag": "a=b", "type": "sqs:queue"}, nil,
			"existing does not name one resource"},
		"NoValue":   {object{"tag": "shared", "type": "sqs:queue"}, bare, "existing.tag is no tag"},
		"NoType":    {object{"tag": "shared=yes"}, bare, "existing.type is given without a tag"},
		"OurTag":    {object{"tag": "longshore:x=y", "type": "sqs:queue"}, bare, "existing.tag is a tag that others set"},
		"NoOutput":  {object{"exports": object{"Arn": "a"}}, nil, `credentials.queue_url names "Url"`},
		"Template":  {both, setting("template", "template.yaml"), "template has no effect"},
		"OnDelete":  {both, setting("on_delete", "empty"), "on_delete has no effect"},
		"NoMapping": {nil, setting("existing", "my-queue"), "existing is not a mapping …"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checked := existing(c.names)
			each(c.do)(t, &checked)
			judged(t, checked, c.want)
		})
	}
}
