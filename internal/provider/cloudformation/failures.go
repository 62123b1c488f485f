package cloudformation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// refused turns a refusal into a failure, since repeating the call would not change it. It explains
// any other error.
func (s *step) refused(ctx context.Context, err error) error {
	if why, is := errors.AsType[refusal](err); is {
		return s.fail(repeatable(string(why)))
	}
	return s.explain(ctx, err)
}

// why records that an operation has failed, with the reason in words for a developer. A provision
// then removes all that it has made.
func (s *step) why(ctx context.Context, d decision) (st provider.Status, err error) {
	why := s.now.Work.Why
	if why == "" {
		if why, err = s.reason(ctx); err != nil {
			return st, err
		}
	}
	f := d.failed
	f.Message = why
	s.now.Work.Failed = &f
	switch kind := s.in.Operation.Kind; {
	case kind == operation.Provision && s.now.ours() && spoilt(s.now.stack.status):
		return s.working(50, "It failed: removing what was made", soon), nil
	case kind == operation.Update && *f.InstanceUsable:
		f.Message += " The instance is as it was before."
	case kind == operation.Update:
		f.Message += " It could not be undone either: the instance may not work. Ask the operator of the service."
	}
	return st, s.fail(f)
}

// reason returns why the last operation of the stack has failed, from the first event that says so:
// events of resources come before those of the stack.
func (s *step) reason(ctx context.Context) (string, error) {
	events, err := s.story(ctx, s.now.stack.id, starts)
	if err != nil {
		return "", s.explain(ctx, err)
	}
	if begun := slices.IndexFunc(events, starts); begun >= 0 {
		events = events[:begun+1] // earlier events belong to other operations
	}
	slices.Reverse(events)
	for _, e := range slices.Concat(parts(events), events) {
		failed := strings.HasSuffix(e.status, "_FAILED") || e.whole && strings.Contains(e.status, "ROLLBACK")
		if failed && telling(e) {
			s.p.Log.WarnContext(ctx, "a resource of a stack has failed", "stack", s.now.stack.name, "resource", e.logical,
				"type", e.kind, "status", e.status, "reason", e.reason)
			return words(e), nil
		}
	}
	return "It failed, and CloudFormation does not say why. Ask the operator of the service.", nil
}

// parts returns the events of single resources.
func parts(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.whole })
}

// starts reports whether a stack-level event begins an operation.
func starts(e event) bool {
	return e.whole && (e.status == createInProgress || e.status == updateInProgress || e.status == deleteInProgress)
}

// explain adds to an error what an operator can do about it.
func (s *site) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	trouble := &target.Trouble{Target: s.name, Err: err}
	switch awserr.Of(err) {
	case awserr.Denied:
		trouble.Kind = target.Rights
		trouble.Message = "the broker may not make a call that it needs: deploy its roles anew, " +
			"or run `longshore aws bootstrap` in that account"
	case awserr.Login:
		trouble.Kind = target.Login
		trouble.Message = "the account refuses the broker's credentials: renew them, or name the right profile or role"
	default:
		return err
	}
	return trouble
}

// judge classifies an error of a call that changes a stack. An error that AWS would repeat for
// ever, or that only an operator can mend, ends the operation: the user is told as much as users
// may know, and the log says what to do.
func (s *step) judge(ctx context.Context, err error) error {
	end := func(text, remedy string) error {
		s.p.Log.ErrorContext(ctx, "a stack cannot be changed", "target", s.name, "stack", s.stackName(),
			"remedy", remedy, "error", err)
		f := repeatable(text)
		if s.now.stack != nil && s.now.stack.status == updateRollbackFailed {
			f.InstanceUsable = new(false) // the rollback still hangs
		}
		return s.fail(f)
	}
	switch awserr.Of(err) {
	case awserr.Quota:
		return end("A limit of the service's account is reached. Ask the operator of the service to raise it.",
			"raise the quota that the error names, in Service Quotas, or delete what is not needed")
	case awserr.Invalid:
		return end("The service's template does not take these values. Check the parameters, or ask the operator of the service.",
			"see whether the template, the values or the service role is wrong")
	case awserr.Denied:
		if s.p.Now().Sub(s.in.Operation.Started) > patience {
			return end("The service's account does not allow this. Ask the operator of the service.",
				"deploy the broker's roles anew, or run `longshore aws bootstrap` in that account: "+
					"the service role of the offering may be missing")
		}
	}
	return s.explain(ctx, err)
}

// patience is how long a call that is denied is repeated: IAM needs a while until a new role is
// known everywhere.
const patience = 3 * time.Minute
