package plan_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestFill(t *testing.T) {
	values := map[string]string{"Name": "queue", "AWS::Region": "eu-west-1", "Loop": "${Name}"}
	for name, tc := range map[string]struct {
		text, want string
		fails      bool
	}{
		"Plain":        {text: "$5 {Name}", want: "$5 {Name}"},
		"Values":       {text: "a ${Name}, b ${AWS::Region}/${Name}", want: "a queue, b eu-west-1/queue"},
		"IAMsOwn":      {text: "${aws:username} ${*}${?}${$}", want: "${aws:username} ${*}${?}${$}"},
		"NotReadAgain": {text: "${Loop}", want: "${Name}"},
		"Unknown":      {text: "${Other}", fails: true},
		"UnknownOfAWS": {text: "${AWS::StackName}", fails: true},
		"Open":         {text: "${Name", fails: true},
		"Empty":        {text: "${}", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.Fill(tc.text, values)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %q and error %v, want %q", got, err, tc.want)
			}
		})
	}
	expect.Same(t, "names", []string{"Name", "AWS::Region"}, plan.Names("${Name}${aws:x}${AWS::Region} ${open"))
}

func TestPlaceLabels(t *testing.T) {
	got := plan.PlaceLabels(provider.Place{Organization: "Müller & Söhne\n", InstanceName: "aws:" + strings.Repeat("x", 300)})
	want := []label.Label{
		{Name: plan.LabelOrganization, Value: "Müller - Söhne-"},
		{Name: plan.LabelInstanceName, Value: "-aws:" + strings.Repeat("x", 124)},
	}
	expect.Same(t, "labels", want, got)
}
