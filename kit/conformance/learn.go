package conformance

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Knowledge is what a broker's plans can do: what the catalog says, and what
// was learned by trying.
type Knowledge struct {
	plans    []*plan // the quick ones first
	services []*service
	// refused are the minor versions that the broker answers with 412.
	refused map[int]bool
	// unguarded says that neither a missing nor a wrong password matters.
	unguarded bool
	// pages says that the broker itself answers paths that it does not serve with a
	// page in HTML, as many web frameworks do.
	pages bool
}

func (k *Knowledge) serves(minor int) bool { return !k.refused[minor] }

type service struct {
	id, name                                            string
	bindable, instancesRetrievable, bindingsRetrievable bool
	contextUpdates                                      bool
	needed                                              []string
	plans                                               []*plan
}

func (s *service) requires(permission string) bool { return slices.Contains(s.needed, permission) }

// A plan is one plan of the catalog. What follows trouble was learned by
// trying.
type plan struct {
	knowledge                       *Knowledge
	service                         *service
	id, name                        string
	bindable, updateable, rotatable bool
	maintenance                     string // version
	schemas                         object
	parameters, bindParameters      object // that requests need

	// trouble is why trying told nothing; refusal says that the broker
	// refused for a reason that it may have.
	trouble string
	refusal bool

	works                         bool // it can be provisioned
	sync, async, asyncOnly, fails bool
	freeParameters                bool
	changes                       []object
	changeAsync, changeFails      bool
	deleteAsync                   bool
	binds                         bool
	bindSync, bindAsync           bool
	bindAsyncOnly, requiresApp    bool
	bindFreeParameters            bool
	credentials, facade           bool
	// noUpdates says that a well-formed update of an instance that is there is
	// answered as a path that is not served.
	noUpdates bool
}

// String names the plan.
func (p *plan) String() string { return p.service.name + "/" + p.name }

// sibling is another plan of the offering that works, or nil.
func (p *plan) sibling() *plan {
	for _, works := range []bool{true, false} {
		for _, other := range p.service.plans {
			if other != p && (other.works && !other.fails || !works) {
				return other
			}
		}
	}
	return nil
}

// later is a plan of the offering that is provisioned and updated only asynchronously,
// or nil.
func (p *plan) later() *plan {
	for _, other := range p.service.plans {
		if other != p && other.works && other.asyncOnly && other.changeAsync {
			return other
		}
	}
	return nil
}

// foreign is a plan of another offering, or nil.
func (p *plan) foreign() *plan {
	for _, s := range p.knowledge.services {
		if s != p.service && len(s.plans) > 0 {
			return s.plans[0]
		}
	}
	return nil
}

func (k *Knowledge) usable() bool {
	return slices.ContainsFunc(k.plans, func(p *plan) bool { return p.works })
}

// unusable says why no plan works.
func (k *Knowledge) unusable() string {
	for _, p := range k.plans {
		if p.trouble != "" {
			return "no plan could be provisioned; " + p.String() + ": " + p.trouble
		}
	}
	return "no plan could be provisioned"
}

// hazards are what the broker may do, and should not.
func (k *Knowledge) hazards(minor int) []Hazard {
	if !k.unguarded {
		return nil
	}
	for _, s := range guarded {
		if s.holds(minor) {
			return []Hazard{{Level: s.Level, Source: s.in(minor),
				Text: "the broker asks for no password, and takes any: whoever reaches it can order and delete, and read credentials"}}
		}
	}
	return nil
}

// results tell of the plans that could not be tried.
func (k *Knowledge) results(r *runner) []Result {
	var out []Result
	for _, p := range k.plans {
		if p.trouble == "" || r.Known != nil {
			continue
		}
		result := Result{ID: "PLAN/" + p.String(), Section: "plans", Title: "the plan can be provisioned, bound and deleted", Level: Must,
			Since: OldestMinor,
			Plan:  p.String(), Outcome: Blocked, Reason: r.secrets.hide(p.trouble)}
		if p.refusal {
			result.Outcome = NotApplicable
		}
		out = append(out, result)
	}
	return out
}

// wanted is the service or the plan that was chosen, or both.
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

// learn reads the catalog and tries each plan. Failing to read the catalog is
// an ErrUnusable.
func (r *runner) learn(ctx context.Context) (*Knowledge, error) {
	s := r.begin(ctx, Case{}, nil)
	a, ok := s.exchange(get(catalog).silent())
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: GET %s: %s", ErrUnusable, catalog, a.fault)
	case a.status == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: it does not take the user name and the password (401)", ErrUnusable)
	case a.status == http.StatusNotFound:
		return nil, fmt.Errorf("%w: there is no broker at %s, whose %s is answered 404: give the URL up to where /v2 begins. It says: %s",
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
		return r.Service != "" && r.Service != p.service.id && r.Service != p.service.name || r.Plan != "" && r.Plan != p.id && r.Plan != p.name
	})
	if len(k.plans) == 0 {
		if r.Service != "" || r.Plan != "" {
			return nil, fmt.Errorf("%w: its catalog has no %s: it has %s", ErrUnusable, r.wanted(), offered)
		}
		return k, nil
	}
	if !slices.ContainsFunc(r.chosen(), func(c Case) bool { return len(c.needs)+len(c.given.needs) > 0 }) {
		k.plans = nil // nothing needs one
		return k, nil
	}
	r.each(k.plans, func(p *plan) { r.try(ctx, p) })
	r.each(k.plans, func(p *plan) { r.tryPlanChange(ctx, p) })
	slices.SortStableFunc(k.plans, func(a, b *plan) int { return a.slowness() - b.slowness() })
	return k, ctx.Err()
}

// slowness puts the quick plans first, and last what cannot be provisioned: only
// what needs no instance is asked of it.
func (p *plan) slowness() int {
	switch {
	case !p.works:
		return 2
	case p.sync:
		return 0
	default:
		return 1
	}
}

// each visits all plans, a few at a time.
func (r *runner) each(plans []*plan, visit func(p *plan)) {
	limit := make(chan struct{}, r.Parallel)
	var group sync.WaitGroup
	for _, p := range plans {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			visit(p)
		})
	}
	group.Wait()
}

// read takes from a catalog what can be read of it; what is malformed is the
// catalog cases' business.
func read(body object) *Knowledge {
	k := &Knowledge{}
	for _, v := range list(body["services"]) {
		s := &service{
			id: text(v, "id"), name: text(v, "name"), bindable: flag(v, "bindable", false), contextUpdates: flag(v, "allow_context_updates", false),
			instancesRetrievable: flag(v, "instances_retrievable", false), bindingsRetrievable: flag(v, "bindings_retrievable", false),
		}
		requires, _ := find(v, "requires")
		if items, ok := requires.([]any); ok {
			for _, item := range items {
				s.needed = append(s.needed, fmt.Sprint(item))
			}
		}
		plans, _ := find(v, "plans")
		for _, w := range list(plans) {
			p := &plan{
				knowledge: k, service: s, id: text(w, "id"), name: text(w, "name"), maintenance: text(w, "maintenance_info.version"),
				bindable: flag(w, "bindable", s.bindable), rotatable: flag(w, "binding_rotatable", false),
				updateable: flag(w, "plan_updateable", flag(v, "plan_updateable", false)),
			}
			p.schemas, _ = w["schemas"].(object)
			if p.id != "" && s.id != "" {
				s.plans = append(s.plans, p)
				k.plans = append(k.plans, p)
			}
		}
		k.services = append(k.services, s)
	}
	return k
}

func list(v any) []object {
	var out []object
	items, _ := v.([]any)
	for _, item := range items {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func text(o object, path string) string {
	v, _ := find(o, path)
	t, _ := v.(string)
	return t
}

func flag(o object, path string, otherwise bool) bool {
	v, _ := find(o, path)
	if b, ok := v.(bool); ok {
		return b
	}
	return otherwise
}

// probe is a parameter that no broker knows: one that takes it takes any.
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
	a, ok := s.tried(remove(instance + asyncIDs))
	p.deleteAsync = ok && a.status == http.StatusAccepted
}

func chosen(given map[string]any, schema object) object {
	if given != nil {
		return normal(given).(object)
	}
	return sample(schema)
}

// troubled records why trying told nothing.
func (s *scene) troubled(a answer, ok bool) bool {
	s.plan.trouble, s.plan.refusal = a.request+" was answered "+a.String(), a.status == http.StatusBadRequest
	if s.plan.refusal {
		s.plan.trouble += "; if it needs parameters, give them with --parameters, --update-parameters, --bind-parameters"
	}
	if !ok {
		s.plan.trouble = a.request + ": no answer: " + a.fault
	}
	return false
}

// tried is exchange, where no answer means that something could not be learned.
func (s *scene) tried(q request) (answer, bool) {
	a, ok := s.exchange(q.silent())
	if !ok {
		s.troubled(a, ok)
	}
	return a, ok
}

func (s *scene) tryProvision() bool {
	p := s.plan
	for _, free := range []bool{true, false} {
		content := body(provision)
		if free {
			content = content.with("parameters."+probe, 1)
		}
		a, ok := s.exchange(set(instance+async, content).silent())
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
		a, ok := s.tried(set("/v2/service_instances/$instance2", body(provision)))
		p.sync = ok && a.status == http.StatusCreated
		p.asyncOnly = ok && a.status == http.StatusUnprocessableEntity
	}
	return true
}

// statusResource reports whether the Location of a 202 is a resource that
// tells the state of the operation in conditions.
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
	default: // nothing is known to change: only whether updates are served is learned
		a, ok := s.tried(patch(instance+async, change(0)))
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
	a, ok := s.exchange(patch(instance+async, change(0)).silent())
	switch {
	case ok && a.status == http.StatusOK:
	case ok && a.status == http.StatusAccepted:
		s.plan.changeAsync = true
		s.plan.changeFails = s.settle(instanceOperation) == failed
	case ok && a.unserved():
		s.plan.changes, s.plan.noUpdates = nil, true
	case !ok || a.status >= http.StatusInternalServerError: // which does not say that there are none
		s.plan.changes = nil
		s.troubled(a, ok)
	default:
		s.plan.changes = nil
	}
}

// tryPlanChange is for plans that take no change of parameters.
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
		content := body(bind)
		if free {
			content = content.with("parameters."+probe, 1)
		}
		a, ok := s.exchange(set(binding+async, content).silent())
		switch {
		case ok && free && (a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity && a.body["error"] != asyncRequired):
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
			return // it binds asynchronously, which this version does not know
		default:
			s.troubled(a, ok)
			return
		}
		break
	}
	p.credentials = s.grant["credentials"] != nil
	if p.bindAsync {
		a, ok := s.tried(set(instance+"/service_bindings/$binding2", body(bind)))
		p.bindSync = ok && a.status == http.StatusCreated
		p.bindAsyncOnly = ok && a.status == http.StatusUnprocessableEntity
	}
	a, ok := s.tried(set(instance+"/service_bindings/$binding3"+async, body(bind).without("app_guid", "bind_resource")))
	p.requiresApp = ok && a.status == http.StatusUnprocessableEntity
	if ok && a.status == http.StatusAccepted {
		s.settle(instance + "/service_bindings/$binding3/last_operation")
	}
}

// schema is a schema of the plan, or nil.
func (p *plan) schema(resource, action string) object {
	v, _ := find(p.schemas, resource+"."+action+".parameters")
	o, _ := v.(object)
	return o
}

// sample makes parameters of a schema: what it requires and no more.
func sample(schema object) object {
	out := object{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	for _, v := range required {
		name, _ := v.(string)
		property, _ := properties[name].(object)
		if v, ok := sampleOf(property); ok {
			out[name] = v
		}
	}
	return out
}

func sampleOf(property object) (any, bool) {
	for _, known := range []string{"default", "const"} {
		if v, ok := property[known]; ok {
			return v, true
		}
	}
	if values, ok := property["enum"].([]any); ok && len(values) > 0 {
		return values[0], true
	}
	switch property["type"] {
	case "integer", "number":
		if v, ok := property["minimum"]; ok {
			return v, true
		}
		return 1, true
	case "boolean":
		return true, true
	case "array":
		return []any{}, true
	case "object":
		return sample(property), true
	case "string":
		n := 8
		if v, ok := property["maxLength"]; ok {
			_, _ = fmt.Sscan(fmt.Sprint(v), &n)
		}
		if v, ok := property["minLength"]; ok {
			var least int
			_, _ = fmt.Sscan(fmt.Sprint(v), &least)
			n = max(min(n, 8), least)
		}
		return strings.Repeat("x", min(n, 1000)), true
	}
	return nil, false
}

// wrong makes parameters that violate a schema of the plan, or nil.
func (p *plan) wrong(resource, action string) object {
	schema := p.schema(resource, action)
	if schema == nil {
		return nil
	}
	out := sample(schema)
	if schema["additionalProperties"] == false {
		out["longshore_unknown_parameter"] = true
		return out
	}
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(object)
		switch property["type"] {
		case "integer", "number", "boolean", "array", "object":
			out[name] = "longshore-wrong-type"
			return out
		case "string":
			out[name] = 5
			return out
		}
	}
	return nil
}

// listed names plans for who has to choose one.
func listed(plans []*plan) string {
	var names []string
	for _, p := range plans {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return "none at all"
	}
	return strings.Join(names, ", ")
}
