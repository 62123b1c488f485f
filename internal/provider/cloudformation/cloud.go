package cloudformation

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A cloud is how the provider sees and changes one region of one account. Each
// method is a call that may be repeated at any time, also while an earlier one whose
// caller has died is still under way. Errors have a class of package awserr.
type cloud interface {
	// identify tells which account the calls reach, and where.
	identify(ctx context.Context) (plan.Location, error)

	// look describes a stack by its name or id: nil if there is none, or if it is deleted.
	look(ctx context.Context, ref string) (*stack, error)

	// send makes a call that changes a stack. Repeated with the same token, it changes
	// nothing more.
	send(ctx context.Context, o order) error

	// story reads the events of a stack, the latest first, until done accepts one.
	story(ctx context.Context, id string, done func(event) bool) ([]event, error)

	// list reads a page of the stacks whose names are asked for, without their events.
	list(ctx context.Context, asked func(name string) bool, cursor string) (page []*stack, next string, err error)

	// room counts the stacks of the account, and says how many there may be; 0 if that is not
	// known.
	room(ctx context.Context) (used, most int, err error)

	contents
	templates
}

// contents are what the resources of a stack hold.
type contents interface {
	// holds names something in a stack's resources that a deletion would lose; empty for
	// nothing.
	holds(ctx context.Context, id string) (what string, err error)

	// empty removes all that keeps a stack's resources from being deleted, as much as fits into
	// the time of ctx; done if nothing is left.
	empty(ctx context.Context, id string) (done bool, err error)

	// spare puts a tag on the resources that are left of a stack, and gives their logical ids.
	spare(ctx context.Context, s *stack, mark label.Label) (names []string, err error)

	// exports reads the exports of all stacks, by their names.
	exports(ctx context.Context) (map[string]string, error)

	// tagged finds the ARNs of the resources of a type that have a tag NAME=VALUE.
	tagged(ctx context.Context, tag, of string) ([]string, error)
}

// templates are texts that are kept by their digests, in a bucket.
type templates interface {
	save(ctx context.Context, bucket, digest string, body []byte) error
	// fetch gives nil if the template is not there.
	fetch(ctx context.Context, bucket, digest string) ([]byte, error)
	// address is the URL by which CloudFormation reads a saved template.
	address(at plan.Location, bucket, digest string) string
	// current reads the template that a stack has.
	current(ctx context.Context, id string) ([]byte, error)
}

// A stack is one of CloudFormation's, as it describes it.
type stack struct {
	id, name, status string
	labels           map[string]string
	// tags say whose the stack is; owned is false if its labels do not say it.
	tags    provider.Tags
	owned   bool
	created time.Time
	updated time.Time // when its last update began; zero for none
	outputs map[string]string
	// parameters are the names of its parameters.
	parameters map[string]bool
	role       string // the ARN of its service role; empty for none
	// events are the latest: the first of the whole stack is among them, if any is.
	events []event
	// retained: its resources outlive it. protected: an operator has forbidden its deletion.
	retained, protected bool
}

// An event is one of a stack, or of a resource in it.
type event struct {
	id, token string
	whole     bool // of the stack itself
	logical   string
	kind      string // the resource's type
	status    string
	reason    string
}

// latest is the last stack-level event.
func (s *stack) latest() (event, bool) {
	for _, e := range s.events {
		if e.whole {
			return e, true
		}
	}
	return event{}, false
}

// An order is a call that changes a stack.
type order struct {
	verb  verb
	token string
	name  string // of a creation
	id    string // of all others
	// body or url are the template; both empty for the one that the stack has.
	body, url    string
	parameters   []parameter
	labels       []label.Label
	role         string
	capabilities bool // the template has IAM resources
	minutes      int32
	spared       []string // logical ids of what a deletion leaves
}

// A parameter is one of a template; keep leaves it as the stack has it.
type parameter struct {
	name, value string
	keep        bool
}

// labelsOf are the tags of an instance's stack.
func labelsOf(in provider.Instance, m plan.Settings, scope plan.Scope) []label.Label {
	out := label.Write(provider.TagsOf(in))
	for _, l := range []label.Label{
		{Name: plan.LabelScope, Value: string(scope)}, {Name: plan.LabelOffering, Value: m.Offering},
		{Name: plan.LabelPlan, Value: label.Encode(in.PlanID)},
		{Name: plan.LabelOnDelete, Value: string(m.OnDelete)},
	} {
		if l.Value != "" {
			out = append(out, l)
		}
	}
	return append(out, plan.PlaceLabels(in.Place)...)
}
