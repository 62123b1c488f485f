package cloudformation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// fill completes an order by its verb.
func (s *step) fill(ctx context.Context, o *order) (err error) {
	o.role = s.role()
	if s.now.stack != nil && s.now.stack.role != "" && (o.verb != callUpdate) {
		o.role = s.now.stack.role
	}
	switch o.verb {
	case callCreate, callUpdate:
		return s.fillWhole(ctx, o)
	case callRetain:
		return s.fillRetention(ctx, o)
	case callDelete:
		if s.now.rule != plan.Retain {
			return nil
		}
		// The update before has put the mark on the stack's tags, but not all types of resources
		// take their stack's tags.
		names, err := s.spare(ctx, s.now.stack, s.retained())
		if s.now.spares() {
			o.spared = names
		}
		return err
	}
	return nil
}

// retained returns the tag that marks resources that outlive their stack.
func (s *step) retained() label.Label {
	return label.Label{Name: plan.LabelRetained, Value: s.p.Now().UTC().Format("2006-01-02")}
}

// minutes returns how long a creation may take. It ends before its operation does, since nobody
// waits for the stack after that.
func (s *step) minutes() int32 {
	most := cmp.Or(s.m.Minutes, plan.DefaultMinutes)
	if end := s.in.Operation.Deadline; !end.IsZero() {
		most = max(1, min(most, int(end.Sub(s.p.Now()).Minutes())-1))
	}
	return int32(most)
}

// late reports whether the time of an update is up. CloudFormation does not limit an update, and
// goes on when its operation has failed: the record would then keep the former meaning of the plan
// while the stack has the new one. The last sixth of the operation's time is for undoing the
// update. The time that an operation waited for its target before does not count.
func (s *step) late() bool {
	op, begun := s.in.Operation, s.p.Now()
	if s.now.Work.Updated {
		begun = op.Started
		if found := s.now.stack; found != nil && found.updated.After(begun) {
			begun = found.updated
		}
	}
	end := begun.Add(time.Duration(cmp.Or(s.m.Minutes, plan.DefaultMinutes)) * time.Minute)
	if last := op.Deadline.Add(-op.Deadline.Sub(op.Started) / 6); !op.Deadline.IsZero() && last.Before(end) {
		end = last
	}
	return op.Kind == operation.Update && !s.p.Now().Before(end)
}

// fillWhole completes a creation or an update: the whole stack as the plan wants it.
func (s *step) fillWhole(ctx context.Context, o *order) error {
	o.labels = labelsOf(s.in, s.m, s.p.Scope)
	i, err := inputsOf(s.in, s.target)
	if err != nil {
		return err
	}
	former, changes := s.m, len(s.in.Former) > 0
	if changes {
		if former, err = plan.Parse(s.in.Former); err != nil {
			return err
		}
	}
	var has map[string]bool
	if o.verb == callUpdate {
		has = s.now.stack.parameters
	}
	if o.parameters, err = i.passed(s.m, !changes || slices.Equal(s.in.Former, s.in.Snapshot), has); err != nil {
		return err
	}
	o.capabilities = identities(s.m.Resources) || identities(former.Resources)
	if o.verb == callCreate {
		o.minutes = s.minutes()
		if err := s.roomy(ctx); err != nil {
			return err
		}
	} else if changes && former.Template == s.m.Template && !s.p.Emulated {
		return nil // the stack keeps its template
	}
	// A stack whose record was rebuilt may have any template.
	return s.template(ctx, o, s.m.Template)
}

// identities reports whether a template has resources that need CAPABILITY_IAM.
func identities(resources map[string]string) bool {
	for _, kind := range resources {
		if strings.HasPrefix(kind, "AWS::IAM::") {
			return true
		}
	}
	return false
}

// role returns the ARN of the service role that CloudFormation uses for the offering; empty if
// there is no offering.
func (s *step) role() string {
	if s.m.Offering == "" {
		return ""
	}
	return s.p.Scope.ServiceRoleARN(s.who, s.m.Offering)
}

// inline is the length of the longest template that a call takes, in bytes.
const inline = 51200

// template puts the template with a digest into an order. It saves the template under its
// digest before the first creation with it: the removal of an offering must not leave stacks that
// cannot be updated.
func (s *step) template(ctx context.Context, o *order, digest string) error {
	body, ok := s.p.File(digest)
	if !ok {
		var err error
		if body, err = s.fetch(ctx, s.bucket(), digest); err != nil {
			return err
		}
		if body == nil {
			return fmt.Errorf("this program does not know the template %s: a deployment is under way, or the bucket of "+
				"templates was emptied", digest)
		}
	} else if saved, _ := s.p.saved.Get(s.name + "/" + digest); !saved {
		if err := s.keep(ctx, digest, body); err != nil {
			return err
		}
		s.p.saved.Put(s.name+"/"+digest, true)
	}
	s.put(o, digest, body)
	return nil
}

// keep saves a template in the bucket.
func (s *step) keep(ctx context.Context, digest string, body []byte) error {
	err := s.save(ctx, s.bucket(), digest, body)
	if awserr.Is(err, awserr.Absent) {
		return &target.Trouble{Kind: target.Other, Target: s.name, Err: err, Message: fmt.Sprintf(
			"it has no bucket %q for templates: run `longshore aws bootstrap` in that account, or deploy the stack anew",
			s.bucket().name)}
	}
	return err
}

// put puts a template into an order: its text, or, if a call does not take that, the URL at which
// CloudFormation reads it from the bucket.
func (s *step) put(o *order, digest string, body []byte) {
	if len(body) > inline {
		o.url = s.who.ObjectURL(s.p.Config.BaseEndpoint, s.bucket().name, key(digest))
	} else {
		o.body = string(body)
	}
}

// bucket returns the bucket for templates.
func (s *step) bucket() bucket {
	return bucket{s.p.Scope.Bucket(s.who.Account, s.who.Region), s.who.Account}
}

// fillRetention completes an update after which deleting the stack deletes no resource. Tags on all
// resources say so.
func (s *step) fillRetention(ctx context.Context, o *order) error {
	body, err := s.current(ctx, s.now.stack.id)
	if err != nil {
		return err
	}
	if body, err = retaining(body); err != nil {
		return err
	}
	digest := plan.Digest(body)
	if len(body) > inline {
		if err := s.keep(ctx, digest, body); err != nil {
			return err
		}
	}
	s.put(o, digest, body)
	labels := maps.Clone(s.now.stack.labels)
	mark := s.retained()
	labels[mark.Name] = mark.Value
	for name, value := range sorted.Map(labels) {
		o.labels = append(o.labels, label.Label{Name: name, Value: value})
	}
	for name := range sorted.Map(s.now.stack.parameters) {
		o.parameters = append(o.parameters, parameter{name: name, keep: true})
	}
	o.capabilities = true
	return nil
}

// retaining returns the template with every resource set to outlive the stack.
func retaining(body []byte) ([]byte, error) {
	var template map[string]json.RawMessage
	var resources map[string]map[string]json.RawMessage
	if err := json.Unmarshal(body, &template); err != nil {
		return nil, fmt.Errorf("reading the template of a stack: %w", err)
	}
	if err := json.Unmarshal(template["Resources"], &resources); err != nil {
		return nil, fmt.Errorf("reading the resources of a stack's template: %w", err)
	}
	for _, r := range resources {
		r["DeletionPolicy"] = json.RawMessage(`"Retain"`)
	}
	template["Resources"], _ = json.Marshal(resources) // what was read always encodes
	return json.Marshal(template)
}
