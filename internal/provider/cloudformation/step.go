package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A step is one call of a provider's method for an instance, at a proven site.
type step struct {
	*site
	p   *Provider
	in  provider.Instance
	m   plan.Settings
	now observed
}

// begin reads the arguments of a step, and reaches its target. The step is nil if there is an
// error, or if the target's identity has just been learnt: the status then records it, and this
// call does no more.
func (p *Provider) begin(ctx context.Context, in provider.Instance) (*step, provider.Status, error) {
	var none provider.Status
	m := plan.Settings{Format: plan.Format}
	if len(in.Snapshot) > 0 {
		var err error
		if m, err = plan.Parse(in.Snapshot); err != nil {
			return nil, none, err
		}
	}
	recorded, err := readState(in.State, in.Operation.ID)
	if err != nil {
		return nil, none, err
	}
	s, learnt, err := p.at(ctx, in)
	if err != nil {
		return nil, none, err
	}
	st := &step{site: s, p: p, in: in, m: m, now: observed{instanceState: recorded, tags: provider.TagsOf(in), rule: m.OnDelete}}
	if learnt == nil {
		return st, none, nil
	}
	if in.Operation.Kind == operation.Provision && m.Existing == nil { // the first call is recorded together with the target
		st.now.Space = plan.SpaceOf(in)
		st.now.Calls++
		st.now.Work.Call = call{Verb: callCreate, Number: st.now.Calls}
	}
	found := st.working(0, "Found the account", soon)
	found.Target = learnt
	if in.Operation.Kind == operation.Bind || in.Operation.Kind == operation.Unbind {
		found.State = nil // the state would become the binding's
	}
	return nil, found, nil
}

// locate finds the space of a stack when no state has it: the key that sealed the state may be
// lost. A creation takes the space of its order.
func (s *step) locate(ctx context.Context) error {
	if s.now.Space != "" {
		return nil
	}
	for found, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]*stack, string, error) {
		return s.list(ctx, func(name string) bool { _, is := s.p.Scope.SpaceIn(name, s.now.tags); return is }, cursor)
	}) {
		if err != nil {
			return s.explain(ctx, err)
		}
		s.now.Space, _ = s.p.Scope.SpaceIn(found.name, s.now.tags)
		return nil
	}
	if s.in.Operation.Kind == operation.Provision {
		s.now.Space = plan.SpaceOf(s.in)
	}
	return nil
}

// stackName returns the name of the instance's stack.
func (s *step) stackName() string { return s.p.Scope.Stack(s.now.tags, s.now.Space) }

// see looks at the stack of the instance.
func (s *step) see(ctx context.Context) error {
	if err := s.locate(ctx); err != nil || s.now.Space == "" {
		return err
	}
	found, err := s.look(ctx, s.stackName())
	if err != nil {
		return s.explain(ctx, err)
	}
	c := s.now.Work.Call
	id := cmp.Or(c.Stack, s.now.Stack)
	if found == nil && id != "" { // an absence is confirmed by the id, which no other stack ever has
		if found, err = s.look(ctx, id); err != nil {
			return s.explain(ctx, err)
		}
	}
	s.now.stack = found
	s.now.late = s.late()
	if found == nil {
		s.now.consumed = s.now.Stack != "" && c.Verb == callCreate
		return nil
	}
	if s.now.rule == "" { // the instance is deleted without a plan
		s.now.rule = plan.Rule(found.labels[plan.LabelOnDelete])
	}
	if s.now.ours() {
		s.now.Stack = found.id
	}
	if last, ok := found.latest(); ok && c.Verb != "" {
		if s.p.Emulated {
			s.now.carried = last.id != c.Mark
			s.now.consumed = s.now.carried
		} else {
			token := s.now.Work.token()
			s.now.carried = last.token == token
			s.now.consumed = slices.ContainsFunc(found.events, func(e event) bool { return e.whole && e.token == token })
		}
	}
	return nil
}

// advance makes the next step of an instance's stack.
func (s *step) advance(ctx context.Context, next func(observed) decision) (st provider.Status, err error) {
	if err := s.see(ctx); err != nil {
		return st, err
	}
	switch d := next(s.now); d.act {
	case actDone:
		return s.done(), nil
	case actFinish:
		return s.rewrite(ctx, s.stackValues())
	case actRecord:
		return s.record(ctx, d.verb)
	case actSend:
		return s.call(ctx, d.verb)
	case actExplain:
		return s.why(ctx, d)
	case actFail:
		return st, s.fail(d.failed)
	default:
		return s.progress(), nil
	}
}

// working returns the status of an operation that goes on.
func (s *step) working(percent int, description string, after time.Duration) provider.Status {
	return provider.Status{Percent: percent, Description: description, After: after, State: s.now.state()}
}

// fail records a failure in the state and returns it with that state: the operation ends for good.
func (s *step) fail(f provider.Failure) error {
	s.now.Work.Failed = &f
	told := f
	told.State = s.now.state()
	return &told
}

func (s *step) done() provider.Status {
	st := provider.Status{Done: true, Percent: 100, State: s.now.state()}
	if s.in.Operation.Kind == operation.Deprovision {
		st.State = instanceState{Space: s.now.Space, Calls: s.now.Calls}.state()
	}
	return st
}

// rewrite gives every binding of an updated instance the policy of the instance's present plan.
func (s *step) rewrite(ctx context.Context, values map[string]string) (st provider.Status, err error) {
	done, err := s.principals.Rewrite(ctx, s.in, s.m, values)
	if err != nil {
		return st, s.explain(ctx, err)
	}
	if !done {
		return s.working(95, "Updating the bindings", time.Second), nil
	}
	return s.done(), nil
}

// soon is the pause between recording a call and making it.
const soon = time.Millisecond

// record records a call before a later step makes it. Before a deletion, it looks into the instance
// or empties it, as the plan's rule says.
func (s *step) record(ctx context.Context, v verb) (st provider.Status, err error) {
	switch updated := s.now.Work.Updated; {
	case v == callCreate: // the former stack is gone
		s.now.Stack = ""
	case v == callUpdate:
		s.now.Work.Updated = true
	case v == callDelete:
		if ready, err := s.prepare(ctx); err != nil {
			return st, err
		} else if !ready {
			return provider.Status{Percent: 5, Description: "Removing what is in it", After: time.Second}, nil
		}
		if s.now.Work.Call.Verb == callDelete && s.now.carried {
			s.now.Work.Tries++
		}
	case v == callContinue && updated && s.now.Work.Why == "": // the reason for the rollback counts
		if s.now.Work.Why, err = s.reason(ctx); err != nil {
			return st, err
		}
	case v == callCancel && updated:
		s.now.Work.Why = textLate
	}
	s.now.Calls++
	s.now.Work.Call = call{Verb: v, Number: s.now.Calls, Stack: s.now.stackID()}
	if s.now.stack != nil {
		last, _ := s.now.stack.latest()
		s.now.Work.Call.Mark = last.id
	}
	return s.working(1, begun[v], soon), nil
}

// begun is the description of an operation while a call is made.
var begun = map[verb]string{
	callCreate: "Creating", callUpdate: "Updating", callDelete: "Deleting", callCancel: "Stopping the update that is under way",
	callContinue: "Undoing the update", callRetain: "Marking what is to be retained",
}

// prepare deals with the contents of the instance by the plan's rule. It is called again until it
// reports ready.
func (s *step) prepare(ctx context.Context) (ready bool, err error) {
	switch s.now.rule {
	case plan.Refuse:
		return true, s.full(ctx)
	case plan.Empty, "":
		ready, err = s.empty(ctx, s.now.stack.id)
		return ready, s.explain(ctx, err)
	}
	return true, nil
}

// full fails if the instance holds something.
func (s *step) full(ctx context.Context) error {
	what, err := s.holds(ctx, s.now.stack.id)
	if err != nil {
		return s.explain(ctx, err)
	}
	if what == "" {
		return nil
	}
	return s.fail(provider.Failure{InstanceUsable: new(true), Untouched: usable(s.now.stack.status), Message: fmt.Sprintf(
		"The instance is not empty: %s. Its plan deletes only empty instances. Remove what is in it, and delete it again.",
		what)})
}

// call makes the recorded call.
func (s *step) call(ctx context.Context, v verb) (st provider.Status, err error) {
	o := order{verb: v, token: s.now.Work.token(), id: s.now.stackID(), name: s.stackName()}
	if err := s.fill(ctx, &o); err != nil {
		return st, s.refused(ctx, err)
	}
	err = s.send(ctx, o)
	again := s.working(2, begun[v], time.Second)
	switch class := awserr.Of(err); {
	case err == nil:
		return again, nil
	case class == awserr.Unchanged && v == callUpdate:
		return s.rewrite(ctx, s.stackValues())
	case class == awserr.Denied && protection.MatchString(err.Error()):
		return st, s.fail(provider.Failure{Message: textProtected, InstanceUsable: new(true)})
	case class == awserr.Exists, class == awserr.Absent, class == awserr.Busy:
		return again, nil // the next step looks at the stack again
	}
	return st, s.judge(ctx, err)
}
