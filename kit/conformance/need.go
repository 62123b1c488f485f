package conformance

import (
	"slices"
	"strings"
)

// A need is a capability that a plan must have for a case to be asked of it.
type need struct {
	what string
	met  func(p *plan) bool
}

type needs []need

var (
	inCatalog     = need{"a plan", func(*plan) bool { return true }}
	saysBindable  = need{"a plan that the catalog says can be bound", func(p *plan) bool { return p.bindable }}
	updatable     = need{updateEndpoint, func(p *plan) bool { return p.works && !p.noUpdates }}
	anyPlan       = need{"a plan that can be provisioned", func(p *plan) bool { return p.works }}
	synchronous   = need{"a plan that is provisioned synchronously", func(p *plan) bool { return p.works && p.sync }}
	asynchronous  = need{"a plan that is provisioned asynchronously", func(p *plan) bool { return p.works && p.async }}
	asyncOnly     = need{"a plan that is provisioned only asynchronously", func(p *plan) bool { return p.works && p.asyncOnly }}
	failing       = need{"a plan whose provision fails", func(p *plan) bool { return p.fails }}
	free          = need{"a plan that takes parameters of any name", func(p *plan) bool { return p.freeParameters }}
	fetchable     = need{"an offering with instances_retrievable", func(p *plan) bool { return p.service.instancesRetrievable }}
	withSibling   = need{"an offering with two plans", func(p *plan) bool { return p.sibling() != nil }}
	withForeign   = need{"a second offering", func(p *plan) bool { return p.foreign() != nil }}
	notUpdateable = need{"a plan with siblings that cannot be changed for another (plan_updateable)", func(p *plan) bool {
		return p.works && !p.updateable && p.sibling() != nil
	}}
	changeable = need{"a plan that takes a change", func(p *plan) bool { return p.works && len(p.changes) > 0 && !p.changeFails }}
	keepsPlan  = need{"a plan that takes a change of its parameters", func(p *plan) bool {
		return p.works && len(p.changes) > 0 && p.changes[0]["plan_id"] == nil
	}}
	twoChanges    = need{"a plan that takes two different changes", func(p *plan) bool { return p.works && len(p.changes) > 1 }}
	changedSync   = need{"a plan that is updated synchronously", func(p *plan) bool { return p.changes != nil && !p.changeAsync }}
	changedAsync  = need{"a plan that is updated asynchronously", func(p *plan) bool { return p.changeAsync }}
	changeFailing = need{"a plan whose update fails", func(p *plan) bool { return p.works && p.changeFails }}
	plansChange   = need{"a plan that can be changed for another (plan_updateable)", func(p *plan) bool {
		return p.works && p.updateable && !p.noUpdates && p.sibling() != nil
	}}
	toAsyncOnly = need{"a synchronous plan that can be changed for one that is only asynchronous (plan_updateable)",
		func(p *plan) bool {
			return p.works && p.sync && p.updateable && !p.noUpdates && p.later() != nil
		}}
	deletedAsync = need{"a plan that is deprovisioned asynchronously", func(p *plan) bool { return p.works && p.deleteAsync }}
	deletedSync  = need{"a plan that is deprovisioned synchronously",
		func(p *plan) bool { return p.works && p.sync && !p.deleteAsync }}
	bindable      = need{"a plan that can be bound", func(p *plan) bool { return p.works && p.binds }}
	bindSync      = need{"a plan that is bound synchronously", func(p *plan) bool { return p.binds && p.bindSync }}
	bindAsync     = need{"a plan that is bound asynchronously", func(p *plan) bool { return p.binds && p.bindAsync }}
	bindAsyncOnly = need{"a plan that is bound only asynchronously", func(p *plan) bool { return p.binds && p.bindAsyncOnly }}
	bindKeys      = need{"a plan that gives service keys", func(p *plan) bool { return p.binds && !p.requiresApp }}
	bindApps      = need{"a plan that refuses service keys", func(p *plan) bool { return p.binds && p.requiresApp }}
	bindFree      = need{"a plan whose bindings take parameters of any name",
		func(p *plan) bool { return p.binds && p.bindFreeParameters }}
	notBindable   = need{"a plan that is not bindable", func(p *plan) bool { return p.works && !p.bindable }}
	withGrant     = need{"a plan whose bindings have credentials", func(p *plan) bool { return p.credentials }}
	bindFetchable = need{"an offering with bindings_retrievable", func(p *plan) bool { return p.service.bindingsRetrievable }}
	rotatable     = need{"a plan with binding_rotatable", func(p *plan) bool { return p.binds && p.rotatable }}
	notRotatable  = need{"a bindable plan without binding_rotatable", func(p *plan) bool { return p.binds && !p.rotatable }}
	maintained    = need{"a plan with maintenance_info", func(p *plan) bool { return p.maintenance != "" }}
	unmaintained  = need{"a plan without maintenance_info", func(p *plan) bool { return p.maintenance == "" }}
	createSchema  = need{"a plan whose schema for create can be violated", func(p *plan) bool {
		return p.wrong("service_instance", "create") != nil
	}}
	updateSchema = need{"a plan whose schema for update can be violated", func(p *plan) bool {
		return p.works && p.wrong("service_instance", "update") != nil
	}}
	bindSchema = need{"a plan whose schema for bind can be violated", func(p *plan) bool {
		return p.binds && p.wrong("service_binding", "create") != nil
	}}
	drains = need{"an offering that requires syslog_drain", func(p *plan) bool {
		return p.binds && p.service.requires("syslog_drain")
	}}
	forwards = need{"an offering that requires route_forwarding", func(p *plan) bool {
		return p.binds && p.service.requires("route_forwarding")
	}}
	forwardsNone = need{"a bindable offering without route_forwarding", func(p *plan) bool {
		return p.binds && !p.service.requires("route_forwarding")
	}}
	mounts = need{"an offering that requires volume_mount", func(p *plan) bool {
		return p.binds && p.service.requires("volume_mount")
	}}
	promised = need{"a plan that can be changed for another (plan_updateable)",
		func(p *plan) bool { return p.works && p.updateable }}

	contextUpdates = need{"an offering with allow_context_updates",
		func(p *plan) bool { return p.works && p.service.contextUpdates }}
	facade = need{"a broker whose 202 names a status resource in Location", func(p *plan) bool { return p.facade }}
)

// updateEndpoint says what a broker lacks that serves no updates.
const updateEndpoint = "an update endpoint: a well-formed PATCH of an instance that is there is answered 404, 405 or 501"

// choose returns the plans that a case can be asked of: those that meet all its needs, the quick
// ones first. If there is none, it returns the reason.
func (k *Knowledge) choose(c Case) ([]*plan, string) {
	needs := slices.Concat(c.needs, c.given.needs)
	if len(needs) == 0 {
		return nil, ""
	}
	able := slices.DeleteFunc(slices.Clone(k.plans), func(p *plan) bool {
		return slices.ContainsFunc(needs, func(n need) bool { return !n.met(p) })
	})
	switch {
	case len(able) > 0:
		return able, ""
	case !k.usable():
		return nil, k.unusable()
	}
	// Name the first need that no plan meets, or else all of them together.
	for _, n := range needs {
		any := false
		for _, p := range k.plans {
			any = any || n.met(p)
		}
		if !any {
			return nil, "the broker does not offer " + n.what
		}
	}
	whats := make([]string, len(needs))
	for i, n := range needs {
		whats[i] = n.what
	}
	return nil, "the broker does not offer, in one plan, " + strings.Join(whats, " and ")
}
