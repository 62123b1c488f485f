package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider"
)

// refused makes a failure of what can never be passed on.
func (s *step) refused(err error) error {
	var why refusal
	if !errors.As(err, &why) {
		return err
	}
	s.now.Work.Failed = &failed{Message: string(why), Usable: yes(), Repeatable: yes()}
	return s.now.failure()
}

// progress tells how many resources are ready, and the name of one that is not.
func (s *step) progress() provider.Status {
	status := s.now.stack.status
	st := provider.Status{Percent: 3, Description: doing(status), After: s.pause(), State: s.now.state()}
	total := len(s.m.Resources)
	if total == 0 {
		return st
	}
	settled, current := s.now.stack.progress()
	st.Percent = min(95, 5+90*settled/max(total, settled))
	st.Description = fmt.Sprintf("%s: %d of %d resources complete", st.Description, settled, max(total, settled))
	if current != "" {
		st.Description += ", " + current + " in progress"
	}
	return st
}

// doing says what CloudFormation does with a stack.
func doing(status string) string {
	switch {
	case strings.HasPrefix(status, "DELETE"), status == rollbackInProgress:
		return "Deleting"
	case strings.Contains(status, "ROLLBACK"):
		return "Undoing the update"
	case strings.HasPrefix(status, "UPDATE"):
		return "Updating"
	}
	return "Creating"
}

// progress counts the resources that the stack's present operation is done with, and
// names one that it works on.
func (s *stack) progress() (settled int, current string) {
	seen := map[string]bool{}
	for _, e := range s.events {
		if e.whole {
			break // what is earlier is of another operation
		}
		if seen[e.logical] {
			continue
		}
		seen[e.logical] = true
		if busy(e.status) {
			current = e.logical
		} else if strings.HasSuffix(e.status, "_COMPLETE") {
			settled++
		}
	}
	return settled, current
}

// pause grows with the time that an operation takes: who waits learns of its end a
// quarter too late at most, and a long one costs few looks.
func (s *step) pause() time.Duration {
	return max(time.Second, min(s.p.now().Sub(s.in.Operation.Started)/4, time.Minute))
}

// why records how an operation has failed, and in words for a developer why. A
// provision goes on to remove what it has made.
func (s *step) why(ctx context.Context, d decision) (provider.Status, error) {
	why := s.now.Work.Why
	if why == "" {
		var err error
		if why, err = s.reason(ctx); err != nil {
			return provider.Status{}, err
		}
	}
	f := d.failed
	f.Message = why
	s.now.Work.Failed = &f
	switch kind := s.in.Operation.Kind; {
	case kind == provider.KindProvision && s.now.ours() && spoilt(s.now.stack.status):
		st := provider.Status{Percent: 50, Description: "It failed: removing what was made", After: soon, State: s.now.state()}
		return st, nil
	case kind == provider.KindUpdate && *f.Usable:
		f.Message += " The instance is as it was before."
	case kind == provider.KindUpdate:
		f.Message += " It could not be undone either: the instance may not work. Ask the operator of the service."
	}
	return provider.Status{}, s.now.failure()
}

// reason is why the last operation of the stack has failed, from the first resource's
// event that says so.
func (s *step) reason(ctx context.Context) (string, error) {
	events, err := s.story(ctx, s.now.stack.id, starts)
	if err != nil {
		return "", s.p.explain(ctx, s.name, err)
	}
	if begun := slices.IndexFunc(events, starts); begun >= 0 {
		events = events[:begun+1] // what is earlier is of other operations
	}
	slices.Reverse(events)
	for _, e := range slices.Concat(parts(events), events) {
		failed := strings.HasSuffix(e.status, "_FAILED") || e.whole && strings.Contains(e.status, "ROLLBACK")
		if failed && telling(e) {
			s.p.log.WarnContext(ctx, "a resource of a stack has failed", "stack", s.now.stack.name, "resource", e.logical,
				"type", e.kind, "status", e.status, "reason", e.reason)
			return words(e), nil
		}
	}
	return "It failed, and CloudFormation does not say why. Ask the operator of the service.", nil
}

// parts are the events of resources.
func parts(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.whole })
}

// starts reports whether a stack-level event begins an operation.
func starts(e event) bool {
	return e.whole && (e.status == createInProgress || e.status == updateInProgress || e.status == deleteInProgress)
}

// explain adds to an error what an operator can do about it.
func (p *Provider) explain(ctx context.Context, target string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	switch awserr.Of(err) {
	case awserr.Denied:
		return &provider.Trouble{Kind: provider.TroubleRights, Target: target, Err: err,
			Message: "the broker may not make a call that it needs: deploy its roles anew, " +
				"or run `longshore aws bootstrap` in that account"}
	case awserr.Login:
		return &provider.Trouble{Kind: provider.TroubleLogin, Target: target, Err: err,
			Message: "the account refuses the broker's credentials: renew them, or name the right profile or role"}
	}
	return err
}

// judge says what an error of a call that changes a stack means. What AWS can never
// do, and what only an operator can mend, ends the operation: the user is told what
// they may know, and the log what the operator must do.
func (p *Provider) judge(ctx context.Context, s *step, err error) error {
	end := func(text, remedy string) error {
		p.log.ErrorContext(ctx, "a stack cannot be changed", "target", s.name, "stack", s.stackName(),
			"remedy", remedy, "error", err)
		s.now.Work.Failed = &failed{Message: text, Usable: yes(), Repeatable: yes()}
		return s.now.failure()
	}
	switch awserr.Of(err) {
	case awserr.Quota:
		return end("A limit of the service's account is reached. Ask the operator of the service to raise it.",
			"raise the quota that the error names, in Service Quotas, or delete what is not needed")
	case awserr.Invalid:
		return end("The service's template does not take these values. Check the parameters, or ask the operator of the service.",
			"see whether the template, the values or the service role is wrong")
	case awserr.Denied:
		if p.now().Sub(s.in.Operation.Started) > patience {
			return end("The service's account does not allow this. Ask the operator of the service.",
				"deploy the broker's roles anew, or run `longshore aws bootstrap` in that account: "+
					"the service role of the offering may be missing")
		}
	}
	return p.explain(ctx, s.name, err)
}

// patience is how long a right that is missing may still be on its way: IAM needs a
// while until a new role counts everywhere.
const patience = 3 * time.Minute

// How much of what an account allows may be used before an operator is warned.
const warnAt = 0.8

// roomTime is how long a count of stacks is believed.
const roomTime = 5 * time.Minute

// roomy refuses a stack that the account has no room for, and warns before that.
func (s *step) roomy(ctx context.Context) error {
	used, ok := s.p.rooms.get(s.name, s.p.now())
	if !ok {
		n, most, err := s.room(ctx)
		if err != nil {
			s.p.log.WarnContext(ctx, "the stacks of a target are not counted", "target", s.name, "error", err)
			most = 0 // a creation says itself if there is no room
		}
		if most > 0 {
			used = 100 * n / most
		}
		s.p.rooms.put(s.name, used, s.p.now().Add(roomTime))
	}
	switch {
	case used >= 100:
		s.p.log.ErrorContext(ctx, "a target has as many stacks as its account allows", "target", s.name,
			"remedy", "raise the quota of stacks in Service Quotas, or delete stacks that are not needed")
		return refusal("The service's account is full. Ask the operator of the service for more room.")
	case float64(used) >= 100*warnAt:
		s.p.log.WarnContext(ctx, "a target has nearly as many stacks as its account allows", "target", s.name, "percent", used,
			"remedy", "raise the quota of stacks in Service Quotas")
	}
	return nil
}

// A memo is what a process remembers, so that it asks less often.
type memo struct {
	mu  *sync.Mutex
	was map[string]noted
}

type noted struct {
	value int
	until time.Time // zero for always
}

func newMemo() memo { return memo{mu: &sync.Mutex{}, was: map[string]noted{}} }

func (m memo) put(key string, value int, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.was[key] = noted{value, until}
}

func (m memo) get(key string, now time.Time) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.was[key]
	return n.value, ok && (n.until.IsZero() || now.Before(n.until))
}

func (m memo) has(key string) bool { _, ok := m.get(key, time.Time{}); return ok }

// existing looks up what a plan names that is there already, as values.
func (s *step) existing(ctx context.Context) (map[string]string, error) {
	e := s.m.Existing
	found := map[string]string{}
	if len(e.Exports) > 0 {
		all, err := s.exports(ctx)
		if err != nil {
			return nil, s.p.explain(ctx, s.name, err)
		}
		for name, export := range e.Exports {
			value, ok := all[export]
			if !ok {
				return nil, s.missing(ctx, "export", export)
			}
			found[name] = value
		}
	}
	if e.Tag != "" {
		arns, err := s.tagged(ctx, e.Tag, e.Type)
		if err != nil {
			return nil, s.p.explain(ctx, s.name, err)
		}
		if len(arns) != 1 {
			return nil, s.missing(ctx, fmt.Sprintf("tag on exactly one %s (%d found)", e.Type, len(arns)), e.Tag)
		}
		found["Arn"] = arns[0]
		found["Name"] = arns[0][strings.LastIndexAny(arns[0], ":/")+1:]
	}
	return s.values(found), nil
}

func (s *step) missing(ctx context.Context, what, name string) error {
	s.p.log.ErrorContext(ctx, "a plan names what is not there", "target", s.name, what, name,
		"remedy", "make it, or have the plan's setting existing name another one")
	return provider.Failf("What this plan gives access to does not exist. Ask the operator of the service.")
}
