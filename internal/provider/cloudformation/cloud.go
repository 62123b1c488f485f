package cloudformation

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A cloud is how the provider sees and changes one region of one account. Every method may be
// repeated at any time, even while an earlier call of a dead process is still under way. Errors
// have a class of package awserr.
type cloud interface {
	// identify returns which account, region and partition the calls reach.
	identify(ctx context.Context) (plan.Location, error)

	// look describes a stack by its name or id; nil if there is none, or if it is deleted.
	look(ctx context.Context, ref string) (*stack, error)

	// send makes a call that changes a stack. Repeating it with the same token changes nothing
	// more.
	send(ctx context.Context, o order) error

	// story reads the events of a stack, the latest first, until done accepts one.
	story(ctx context.Context, id string, done func(event) bool) ([]event, error)

	// list reads a page of the stacks whose names asked accepts, without their events.
	list(ctx context.Context, asked func(name string) bool, cursor string) (page []*stack, next string, err error)

	// room counts the stacks of the account, and returns how many it may have; 0 if that is
	// unknown.
	room(ctx context.Context) (used, most int, err error)

	contents
	templates
}

// contents looks into the resources of a stack, and deals with their contents.
type contents interface {
	// holds names something in a stack's resources that a deletion would lose; empty if there is
	// nothing.
	holds(ctx context.Context, id string) (what string, err error)

	// empty removes all that keeps a stack's resources from being deleted, as much as fits into the
	// time of ctx. It reports done if nothing is left.
	empty(ctx context.Context, id string) (done bool, err error)

	// spare puts a tag on the resources that are left of a stack, and returns their logical ids.
	spare(ctx context.Context, s *stack, mark label.Label) (names []string, err error)

	// exports reads the exports of all stacks, by their names.
	exports(ctx context.Context) (map[string]string, error)

	// tagged finds the ARNs of the resources of type of that have a tag NAME=VALUE.
	tagged(ctx context.Context, tag, of string) ([]string, error)
}

// A bucket holds templates. Hazard: once it is deleted, another account may take its name, and CloudFormation
// would make what that account's templates say. So each call names the owner.
type bucket struct{ name, owner string }

// templates keeps templates by their digests.
type templates interface {
	save(ctx context.Context, in bucket, digest string, body []byte) error
	// fetch returns nil if there is no such template.
	fetch(ctx context.Context, in bucket, digest string) ([]byte, error)
	// current reads the template of a stack.
	current(ctx context.Context, id string) ([]byte, error)
}

// A stack is a CloudFormation stack as CloudFormation describes it.
type stack struct {
	id, name, status string
	labels           map[string]string
	// tags say which instance the stack belongs to; zero if its labels do not say that.
	tags    provider.Tags
	created time.Time
	updated time.Time // when the last update began; zero if there was none
	outputs map[string]string
	// parameters has the names of the stack's parameters.
	parameters map[string]bool
	role       string // the ARN of its service role; empty for none
	// events are the latest events, up to the first stack-level event at least, if there is one.
	events []event
	// retained: the resources outlive the stack. protected: an operator has forbidden its deletion.
	retained, protected bool
}

// An event is an event of a stack, or of a resource in it.
type event struct {
	id, token string
	whole     bool // about the stack itself
	logical   string
	kind      string // the resource's type
	status    string
	reason    string
}

// latest returns the last stack-level event.
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
	name  string // for a creation
	id    string // for all other calls
	// body or url is the template; if both are empty, the stack keeps its own.
	body, url    string
	parameters   []parameter
	labels       []label.Label
	role         string
	capabilities bool // the template has IAM resources
	minutes      int32
	spared       []string // logical ids of the resources that a deletion leaves
}

// A parameter is a parameter of a template. keep says that the stack keeps its present value.
type parameter struct {
	name, value string
	keep        bool
}

// labelsOf returns the tags of an instance's stack.
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
