package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// wanted describes the service or the plan that the options name, or both.
func (o Options) wanted() string {
	switch {
	case o.Plan == "":
		return fmt.Sprintf("service %q", o.Service)
	case o.Service == "":
		return fmt.Sprintf("plan %q", o.Plan)
	default:
		return fmt.Sprintf("plan %q of a service %q", o.Plan, o.Service)
	}
}

// learn reads the catalog and tries each plan. The error is ErrUnusable if the catalog cannot be read.
func (r *runner) learn(ctx context.Context) (*Knowledge, error) {
	s := r.begin(ctx, Case{}, nil)
	a, ok := s.exchange(get(catalog).silent())
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: GET %s: %s", ErrUnusable, catalog, a.fault)
	case a.status == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: it does not take the user name and the password (401)", ErrUnusable)
	case a.status == http.StatusNotFound:
		return nil,
			fmt.Errorf("%w: there is no broker at %s, whose %s is answered 404: give the URL up to where /v2 begins. It says: %s",
				ErrUnusable, r.base.Redacted(), catalog, r.secrets.hide(a.String()))
	case a.status != http.StatusOK || a.body == nil:
		return nil, fmt.Errorf("%w: GET %s: %s", ErrUnusable, catalog, r.secrets.hide(a.String()))
	}
	k := read(a.body)
	k.refused = map[int]bool{}
	for minor := OldestMinor; minor <= r.Minor; minor++ {
		a, ok := s.exchange(get(catalog).as(minor).silent())
		k.refused[minor] = ok && a.status == http.StatusPreconditionFailed
	}
	none, _ := s.exchange(get(catalog).with("Authorization", "").silent())
	wrong, _ := s.exchange(get(catalog).with("Authorization", login("longshore-nobody", "longshore-nothing")).silent())
	k.unguarded = none.status == http.StatusOK && wrong.status == http.StatusOK
	nowhere, _ := s.exchange(get("/v2/longshore-nowhere").silent())
	k.pages = nowhere.page()
	k.plans = slices.DeleteFunc(k.plans, func(p *plan) bool {
		return slices.Contains(r.Without, p.service.id) || slices.Contains(r.Without, p.service.name)
	})
	offered := listed(k.plans)
	k.plans = slices.DeleteFunc(k.plans, func(p *plan) bool {
		return r.Service != "" && r.Service != p.service.id && r.Service != p.service.name ||
			r.Plan != "" && r.Plan != p.id && r.Plan != p.name
	})
	if len(k.plans) == 0 {
		if r.Service != "" || r.Plan != "" {
			return nil, fmt.Errorf("%w: its catalog has no %s: it has %s", ErrUnusable, r.wanted(), offered)
		}
		return k, nil
	}
	if !slices.ContainsFunc(r.chosen(), func(c Case) bool { return len(c.needs)+len(c.given.needs) > 0 }) {
		k.plans = nil // no case needs a plan
		return k, nil
	}
	each(r.Parallel, k.plans, func(p *plan) { r.try(ctx, p) })
	each(r.Parallel, k.plans, func(p *plan) { r.tryPlanChange(ctx, p) })
	slices.SortStableFunc(k.plans, func(a, b *plan) int { return a.slowness() - b.slowness() })
	return k, ctx.Err()
}

// each calls visit for all items, a few at a time.
func each[T any](few int, all []T, visit func(T)) {
	limit := make(chan struct{}, few)
	var group sync.WaitGroup
	for _, one := range all {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			visit(one)
		})
	}
	group.Wait()
}

// probe is a parameter that no broker knows: a plan that accepts it accepts any.
const probe = "conformance_check"

// try finds out what a plan can do, on instances of its own.
func (r *runner) try(ctx context.Context, p *plan) {
	p.parameters = chosen(r.Parameters, p.schema("service_instance", "create"))
	p.bindParameters = chosen(r.BindParameters, p.schema("service_binding", "create"))
	s := r.begin(ctx, Case{ID: "trying " + p.String()}, p)
	defer r.ledger.later(s.cleanUp)
	if !s.tryProvision() || !p.works {
		return
	}
	s.tryChange()
	if p.bindable {
		s.tryBind()
	}
	a, ok := s.tried(toDeprovision)
	p.deleteAsync = ok && a.status == http.StatusAccepted
}

// troubled records why trying taught nothing.
func (s *scene) troubled(a response, ok bool) bool {
	s.plan.trouble, s.plan.refusal = a.request+" was answered "+a.String(), a.status == http.StatusBadRequest
	if s.plan.refusal {
		s.plan.trouble += "; if it needs parameters, give them with --parameters, --update-parameters, --bind-parameters"
	}
	if !ok {
		s.plan.trouble = a.request + ": no answer: " + a.fault
	}
	return false
}

// tried sends a request; a missing answer is recorded as trouble.
func (s *scene) tried(q request) (response, bool) {
	a, ok := s.exchange(q.silent())
	if !ok {
		s.troubled(a, ok)
	}
	return a, ok
}

func (s *scene) tryProvision() bool {
	p := s.plan
	for _, free := range []bool{true, false} {
		content := provision
		if free {
			content = content.with(freeParameter, 1)
		}
		a, ok := s.exchange(toProvision(content).silent())
		switch {
		case ok && free && (a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity):
			continue
		case ok && (a.status == http.StatusCreated || a.status == http.StatusOK):
			p.works, p.sync, p.freeParameters = true, true, free
		case ok && a.status == http.StatusAccepted:
			p.async, p.freeParameters = true, free
			p.facade = s.statusResource()
			switch state := s.settle(instanceOperation); state {
			case succeeded:
				p.works = true
			case failed:
				p.fails = true
				return true
			default:
				p.trouble = a.request + " was accepted, and its operation ended: " + state
				return false
			}
		default:
			return s.troubled(a, ok)
		}
		break
	}
	if p.async {
		a, ok := s.tried(set("/v2/service_instances/$instance2", provision))
		p.sync = ok && a.status == http.StatusCreated
		p.asyncOnly = ok && a.status == http.StatusUnprocessableEntity
	}
	return true
}

// statusResource reports whether the Location of a 202 is a resource that shows the state of the operation.
func (s *scene) statusResource() bool {
	if location, _ := s.known("location"); location == "" {
		return false
	}
	a, ok := s.exchange(get("$location").silent())
	_, told := find(a.body, "status.state")
	return ok && told
}

func (s *scene) tryChange() {
	var changes []object
	switch {
	case s.UpdateParameters != nil:
		changes = []object{{"parameters": normal(s.UpdateParameters)}}
	case s.plan.freeParameters:
		changes = []object{{"parameters": object{probe: 2}}, {"parameters": object{probe: 3}}}
	default: // no change is known: learn only whether updates are served
		a, ok := s.tried(toUpdate(change(0)))
		s.plan.noUpdates = ok && a.unserved()
		if ok && a.status == http.StatusAccepted {
			s.settle(instanceOperation)
		}
		return
	}
	s.tryChanges(changes)
}

func (s *scene) tryChanges(changes []object) {
	s.plan.changes = changes
	a, ok := s.exchange(toUpdate(change(0)).silent())
	switch {
	case ok && a.status == http.StatusOK:
	case ok && a.status == http.StatusAccepted:
		s.plan.changeAsync = true
		s.plan.changeFails = s.settle(instanceOperation) == failed
	case ok && a.unserved():
		s.plan.changes, s.plan.noUpdates = nil, true
	case !ok || a.status >= http.StatusInternalServerError: // this does not prove that updates are not served
		s.plan.changes = nil
		s.troubled(a, ok)
	default:
		s.plan.changes = nil
	}
}

// tryPlanChange tries a change of plan, for plans that accept no change of parameters.
func (r *runner) tryPlanChange(ctx context.Context, p *plan) {
	if !p.works || p.changes != nil || !p.updateable || p.noUpdates {
		return
	}
	var changes []object
	for _, other := range p.service.plans {
		if other != p && other.works && len(other.parameters) == 0 {
			changes = append(changes, object{"plan_id": other.id})
		}
	}
	if len(changes) == 0 {
		return
	}
	s := r.begin(ctx, Case{ID: "trying " + p.String()}, p)
	defer r.ledger.later(s.cleanUp)
	if s.provisioned() {
		s.tryChanges(changes)
	}
}

func (s *scene) tryBind() {
	p := s.plan
	for _, free := range []bool{true, false} {
		content := bind
		if free {
			content = content.with(freeParameter, 1)
		}
		a, ok := s.exchange(toBind(content).silent())
		switch {
		case ok && free && (a.status == http.StatusBadRequest ||
			a.status == http.StatusUnprocessableEntity && a.body["error"] != asyncRequired):
			continue
		case ok && (a.status == http.StatusCreated || a.status == http.StatusOK):
			p.binds, p.bindSync, p.bindFreeParameters = true, true, free
		case ok && a.status == http.StatusAccepted:
			p.bindAsync, p.bindFreeParameters = true, free
			if state := s.settle(bindingOperation); state != succeeded {
				p.trouble = a.request + " was accepted, and its operation ended: " + state
				return
			}
			p.binds = true
			_, _ = s.exchange(get(binding).silent())
		case ok && s.Minor < 14 && a.body["error"] == asyncRequired:
			return // it binds asynchronously, which this version does not have
		default:
			s.troubled(a, ok)
			return
		}
		break
	}
	p.credentials = s.grant["credentials"] != nil
	if p.bindAsync {
		a, ok := s.tried(set(instance+"/service_bindings/$binding2", bind))
		p.bindSync = ok && a.status == http.StatusCreated
		p.bindAsyncOnly = ok && a.status == http.StatusUnprocessableEntity
	}
	a, ok := s.tried(set(instance+"/service_bindings/$binding3"+async, bind.without("app_guid", "bind_resource")))
	p.requiresApp = ok && a.status == http.StatusUnprocessableEntity
	if ok && a.status == http.StatusAccepted {
		s.settle(instance + "/service_bindings/$binding3/last_operation")
	}
}
