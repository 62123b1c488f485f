// Package cloudformation makes instances of what a CloudFormation template
// describes: a stack for each, in an account that the operator names. It decides what
// comes next (next.go) from what CloudFormation says and what is recorded, and leaves
// the calls to one file (aws.go). The settings of plans are package plan's, and the
// principals of bindings are package principal's.
package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Options are what a Provider is made with.
type Options struct {
	// Broker is the broker's identity.
	Broker string
	// Scope is what the names of all that is made begin with.
	Scope plan.Scope
	// Targets are today's.
	Targets Targets
	// Config is the broker's own way to AWS: credentials, region, endpoint.
	Config aws.Config
	// Session is a policy that bounds the sessions of roles in other accounts; empty for
	// none.
	Session string
	// Emulated says that events carry no tokens of calls: their ids are compared
	// instead. LocalStack is so.
	Emulated bool
	// File is the content of a file of the compiled catalog by its digest.
	File func(digest string) ([]byte, bool)
	Now  func() time.Time
	// Log is told what an operator has to know; nil for nothing.
	Log *slog.Logger
}

// A Provider is the adapter.
type Provider struct {
	broker   string
	scope    plan.Scope
	targets  Targets
	region   string // of targets that have none of their own
	emulated bool
	file     func(digest string) ([]byte, bool)
	now      func() time.Time
	log      *slog.Logger
	// open is the way to a target; a test has another one.
	open  func(name string, t Target) (cloud, func(plan.Place) principals)
	sites sites
	saved memo // templates by target and digest
	rooms memo // how many stacks there are, by target
}

// principals make those of bindings, and list them. Package principal's Keeper is one
// for each target.
type principals interface {
	Bind(ctx context.Context, b provider.Binding, m plan.Settings, values map[string]string) (provider.Status, error)
	Unbind(ctx context.Context, b provider.Binding) (provider.Status, error)
	// Rewrite gives all principals of an instance the policy that its plan has now.
	Rewrite(ctx context.Context, in provider.Instance, m plan.Settings, values map[string]string) (done bool, err error)
	provider.Inventory
	provider.Quarantiner
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Refuser     = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
)

// New makes a provider. It reaches nothing yet.
func New(o Options) *Provider {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p := &Provider{
		broker: o.Broker, scope: o.Scope, targets: o.Targets, region: o.Config.Region, emulated: o.Emulated, file: o.File,
		now: o.Now,
		log: o.Log, sites: sites{opened: map[string]opened{}},
		saved: newMemo(), rooms: newMemo(),
	}
	p.open = func(_ string, t Target) (cloud, func(plan.Place) principals) { return openAWS(o, t) }
	return p
}

// Targets gives the names of today's targets, in order: it is a provider.Wired's.
func (p *Provider) Targets(context.Context) ([]string, error) { return p.targets.names(), nil }

// A step is one call of a verb, at a site that is proven.
type step struct {
	*site
	p   *Provider
	in  provider.Instance
	m   plan.Settings
	now standing
}

// begin reads what a step is given, and reaches its target. A status says that the
// target had to be learnt first.
func (p *Provider) begin(ctx context.Context, in provider.Instance) (*step, *provider.Status, error) {
	m := plan.Settings{Format: plan.Format}
	if len(in.Snapshot) > 0 {
		var err error
		if m, err = plan.Parse(in.Snapshot); err != nil {
			return nil, nil, err
		}
	}
	remembered, err := recall(in.State, in.Operation.ID)
	if err != nil {
		return nil, nil, err
	}
	s, learnt, err := p.at(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	st := &step{site: s, p: p, in: in, m: m, now: standing{memory: remembered, tags: provider.TagsOf(in), rule: m.OnDelete}}
	if learnt == nil {
		return st, nil, nil
	}
	if in.Operation.Kind == provider.KindProvision && m.Existing == nil { // the first call is recorded with it
		st.now.Space = plan.SpaceOf(in)
		st.now.Calls++
		st.now.Work.Call = call{Verb: callCreate, Number: st.now.Calls}
	}
	found := &provider.Status{Target: learnt, Description: "Found the account", After: time.Millisecond}
	if in.Operation.Kind != provider.KindBind && in.Operation.Kind != provider.KindUnbind {
		found.State = st.now.state()
	}
	return st, found, nil
}

// locate finds the space of a stack where no state tells it, since the key that sealed it
// may be lost. A creation without one begins with the space of its order.
func (s *step) locate(ctx context.Context) error {
	if s.now.Space != "" {
		return nil
	}
	for found, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]*stack, string, error) {
		return s.list(ctx, func(name string) bool { _, is := s.p.scope.SpaceIn(name, s.now.tags); return is }, cursor)
	}) {
		if err != nil {
			return s.p.explain(ctx, s.name, err)
		}
		s.now.Space, _ = s.p.scope.SpaceIn(found.name, s.now.tags)
		return nil
	}
	if s.in.Operation.Kind == provider.KindProvision {
		s.now.Space = plan.SpaceOf(s.in)
	}
	return nil
}

// stackName is the name of the instance's stack.
func (s *step) stackName() string { return s.p.scope.Stack(s.now.tags, s.now.Space) }

// see looks at what stands at the instance's name.
func (s *step) see(ctx context.Context) error {
	if err := s.locate(ctx); err != nil || s.now.Space == "" {
		return err
	}
	found, err := s.look(ctx, s.stackName())
	if err != nil {
		return s.p.explain(ctx, s.name, err)
	}
	c := s.now.Work.Call
	id := cmp.Or(c.Stack, s.now.Stack)
	if found == nil && id != "" { // an absence is confirmed by the id, which no other stack ever has
		if found, err = s.look(ctx, id); err != nil {
			return s.p.explain(ctx, s.name, err)
		}
	}
	s.now.stack = found
	s.now.late = s.late()
	if found == nil {
		s.now.consumed = s.now.Stack != "" && c.Verb == callCreate
		return nil
	}
	if s.now.rule == "" { // it is deleted without a plan
		s.now.rule = plan.Rule(found.labels[plan.LabelOnDelete])
	}
	if s.now.ours() {
		s.now.Stack = found.id
	}
	if last, ok := found.latest(); ok && c.Verb != "" {
		if s.p.emulated {
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

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	s, learnt, err := p.begin(ctx, in)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	switch {
	case in.Source != nil:
		return provider.Status{}, provider.Failf("This service cannot restore an instance from another one. Order a new one.")
	case s.m.Existing != nil:
		_, err := s.existing(ctx)
		return provider.Status{Done: err == nil, Percent: 100}, err
	}
	return s.advance(ctx, standing.provision)
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	s, learnt, err := p.begin(ctx, in)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if former, err := plan.Parse(in.Former); err == nil && (former.Existing == nil) != (s.m.Existing == nil) {
		// Its stack would stay behind: nobody looks for one of what exists already.
		return provider.Status{}, &provider.Failure{Message: textMoved, InstanceUsable: yes(), UpdateRepeatable: no()}
	}
	if s.m.Existing != nil {
		values, err := s.existing(ctx)
		if err != nil {
			return provider.Status{}, err
		}
		return s.rewrite(ctx, values)
	}
	return s.advance(ctx, standing.update)
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	s, learnt, err := p.begin(ctx, in)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if s.m.Existing != nil {
		return provider.Status{Done: true, Percent: 100, State: &provider.State{}}, nil
	}
	if in.Unfinished { // nobody has used it
		s.now.rule = plan.Empty
	}
	return s.advance(ctx, standing.deprovision)
}

// Refuses implements provider.Refuser: what an instance holds is looked at before its
// bindings end.
func (p *Provider) Refuses(ctx context.Context, in provider.Instance) error {
	s, learnt, err := p.begin(ctx, in)
	if err != nil || learnt != nil || s.m.Existing != nil || in.Unfinished {
		return err
	}
	if err := s.see(ctx); err != nil {
		return err
	}
	if s.now.stack == nil || !s.now.ours() || !usable(s.now.stack.status) || s.now.rule != plan.Refuse {
		return nil
	}
	return s.full(ctx)
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	s, learnt, err := p.begin(ctx, b.Instance)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if s.m.Existing != nil {
		values, err := s.existing(ctx)
		if err != nil {
			return provider.Status{}, err
		}
		return s.bind(ctx, b, values)
	}
	if err := s.see(ctx); err != nil {
		return provider.Status{}, err
	}
	if f := s.now.bind(); f != nil {
		return provider.Status{}, provider.Failf("%s", f.Message)
	}
	if !made(s.now.stack.status) {
		return provider.Status{Description: "The instance is not ready yet"}, nil
	}
	return s.bind(ctx, b, s.stackValues())
}

func (s *step) bind(ctx context.Context, b provider.Binding, values map[string]string) (provider.Status, error) {
	st, err := s.principals.Bind(ctx, b, s.m, values)
	return st, s.p.explain(ctx, s.name, err)
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	b.Instance.Snapshot = nil // a principal is found by its tags
	s, learnt, err := p.begin(ctx, b.Instance)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	st, err := s.principals.Unbind(ctx, b)
	return st, p.explain(ctx, s.name, err)
}

func or(st *provider.Status) provider.Status {
	if st == nil {
		return provider.Status{}
	}
	return *st
}

// advance makes the one next step of an instance's stack.
func (s *step) advance(ctx context.Context, next func(standing) decision) (provider.Status, error) {
	if err := s.see(ctx); err != nil {
		return provider.Status{}, err
	}
	d := next(s.now)
	if d.verb == callDelete {
		s.now.rule = d.rule
	}
	switch d.act {
	case actDone:
		return s.done(), nil
	case actFinish:
		return s.rewrite(ctx, s.stackValues())
	case actRecord:
		return s.record(ctx, d)
	case actSend:
		return s.call(ctx, d.verb)
	case actExplain:
		return s.why(ctx, d)
	case actFail:
		s.now.Work.Failed = &d.failed
		return provider.Status{}, s.now.failure()
	default:
		return s.progress(), nil
	}
}

func (s *step) done() provider.Status {
	st := provider.Status{Done: true, Percent: 100, State: s.now.state()}
	if s.in.Operation.Kind == provider.KindDeprovision {
		st.State = memory{Space: s.now.Space, Calls: s.now.Calls}.state()
	}
	return st
}

// rewrite gives every binding of an updated instance the policy that its plan has now.
func (s *step) rewrite(ctx context.Context, values map[string]string) (provider.Status, error) {
	done, err := s.principals.Rewrite(ctx, s.in, s.m, values)
	if err != nil {
		return provider.Status{}, s.p.explain(ctx, s.name, err)
	}
	if !done {
		return provider.Status{Percent: 95, Description: "Updating the bindings", After: time.Second, State: s.now.state()}, nil
	}
	return s.done(), nil
}

// soon is when a call that was just recorded is made.
const soon = time.Millisecond

// record writes down a call before it is made. What the instance holds is looked at,
// or removed, before a deletion is.
func (s *step) record(ctx context.Context, d decision) (provider.Status, error) {
	if d.verb == callDelete {
		if st, err := s.prepare(ctx); st != nil || err != nil {
			return or(st), err
		}
		if last := s.now.Work.Call; last.Verb == callDelete && s.now.carried {
			s.now.Work.Tries++
		}
	}
	if d.verb == callContinue && s.now.Work.Updated && s.now.Work.Why == "" { // what began it counts
		why, err := s.reason(ctx)
		if err != nil {
			return provider.Status{}, err
		}
		s.now.Work.Why = why
	}
	if d.verb == callCancel && s.now.Work.Updated {
		s.now.Work.Why = textLate
	}
	s.now.Calls++
	c := call{Verb: d.verb, Number: s.now.Calls, Stack: s.now.stackID()}
	if s.now.stack != nil {
		last, _ := s.now.stack.latest()
		c.Mark = last.id
	}
	s.now.Work.Call = c
	s.now.Work.Updated = s.now.Work.Updated || d.verb == callUpdate
	if d.verb == callCreate { // the stack that was there is gone
		s.now.Stack = ""
	}
	return provider.Status{State: s.now.state(), After: soon, Percent: 1, Description: begun[d.verb]}, nil
}

// What is shown while a call is made.
var begun = map[verb]string{
	callCreate: "Creating", callUpdate: "Updating", callDelete: "Deleting", callCancel: "Stopping the update that is under way",
	callContinue: "Undoing the update", callRetain: "Marking what is to be retained",
}

// prepare sees to what the instance holds, by the plan's rule. A status says that more
// is to be done.
func (s *step) prepare(ctx context.Context) (*provider.Status, error) {
	switch s.now.rule {
	case plan.Refuse:
		if err := s.full(ctx); err != nil {
			return nil, err
		}
	case plan.Empty, "":
		done, err := s.empty(ctx, s.now.stack.id)
		if err != nil {
			return nil, s.p.explain(ctx, s.name, err)
		}
		if !done {
			return &provider.Status{Percent: 5, Description: "Removing what is in it", After: time.Second}, nil
		}
	}
	return nil, nil
}

// full is a failure if the instance holds something.
func (s *step) full(ctx context.Context) error {
	what, err := s.holds(ctx, s.now.stack.id)
	if err != nil {
		return s.p.explain(ctx, s.name, err)
	}
	if what == "" {
		return nil
	}
	s.now.Work.Failed = &failed{Usable: yes(), Untouched: usable(s.now.stack.status), Message: fmt.Sprintf(
		"The instance is not empty: %s. Its plan deletes only empty instances. Remove what is in it, and delete it again.", what)}
	return s.now.failure()
}

// call makes the recorded call.
func (s *step) call(ctx context.Context, v verb) (provider.Status, error) {
	o := order{verb: v, token: s.now.Work.token(), id: s.now.stackID(), name: s.stackName()}
	if err := s.fill(ctx, &o); err != nil {
		return provider.Status{}, s.refused(err)
	}
	err := s.send(ctx, o)
	again := provider.Status{Percent: 2, Description: begun[v], After: time.Second, State: s.now.state()}
	switch class := awserr.Of(err); {
	case err == nil:
		return again, nil
	case class == awserr.Unchanged && v == callUpdate:
		return s.rewrite(ctx, s.stackValues())
	case class == awserr.Denied && protection.MatchString(err.Error()):
		s.now.Work.Failed = &failed{Message: textProtected, Usable: yes()}
		return provider.Status{}, s.now.failure()
	case class == awserr.Exists, class == awserr.Absent, class == awserr.Busy:
		return again, nil // it is looked at again
	}
	return provider.Status{}, s.p.judge(ctx, s, err)
}
