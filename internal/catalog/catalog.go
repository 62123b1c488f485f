// Package catalog holds what a broker offers: it looks up offerings and plans in a compiled
// catalog, and checks users' parameters against a plan's schemas.
//
// It reads no offering files: package catalog/compile turns them into a compiled catalog. A function
// that starts cold waits for its catalog, so opening one costs the same for one offering as for a
// hundred: an offering is decoded, and a schema compiled, when it is first asked for. Callers decide
// whether a request may name a plan, and what to answer if it may not. The rules are CAT-*.
package catalog

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/longshore/longshore/internal/base/secret"
)

// An Offering is a service offering. Its JSON form is that of the catalog endpoint (CAT-*);
// members tagged "-" are the broker's own.
type Offering struct {
	ID                   string           `json:"id"`
	Name                 string           `json:"name"`
	Description          string           `json:"description"`
	Tags                 []string         `json:"tags,omitempty"`
	Requires             []string         `json:"requires,omitempty"`
	Bindable             bool             `json:"bindable"`
	InstancesRetrievable bool             `json:"instances_retrievable,omitempty"`
	BindingsRetrievable  bool             `json:"bindings_retrievable,omitempty"`
	AllowContextUpdates  bool             `json:"allow_context_updates,omitempty"`
	Metadata             json.RawMessage  `json:"metadata,omitempty"`
	DashboardClient      *DashboardClient `json:"dashboard_client,omitempty"`
	PlanUpdateable       bool             `json:"plan_updateable,omitempty"`
	Plans                []Plan           `json:"plans"`

	// DashboardURL is the address of an instance's dashboard, with InstancePlaceholder in place
	// of the id; empty if instances have no dashboard.
	DashboardURL string `json:"-"`
	// Provider names the provider that makes the instances.
	Provider string `json:"-"`
}

// InstancePlaceholder stands for an instance's id in a dashboard's URL.
const InstancePlaceholder = "{instance_id}"

// DashboardOf returns the address of an instance's dashboard; empty if it has none.
func (o Offering) DashboardOf(instance string) string {
	return strings.ReplaceAll(o.DashboardURL, InstancePlaceholder, url.PathEscape(instance))
}

// A DashboardClient is emitted whole or not at all (CAT-12). It holds a secret that only its
// JSON form shows; formatting and logging do not.
type DashboardClient struct {
	secret.Holder
	ID          string `json:"id"`
	Secret      string `json:"secret"`
	RedirectURI string `json:"redirect_uri"`
}

// A Plan is a service plan.
type Plan struct {
	ID                     string           `json:"id"`
	Name                   string           `json:"name"`
	Description            string           `json:"description"`
	Metadata               json.RawMessage  `json:"metadata,omitempty"`
	Free                   *bool            `json:"free,omitempty"`
	Bindable               *bool            `json:"bindable,omitempty"`
	PlanUpdateable         *bool            `json:"plan_updateable,omitempty"`
	BindingRotatable       *bool            `json:"binding_rotatable,omitempty"`        // emitted from 2.17 on (CAT-25)
	MaximumPollingDuration int              `json:"maximum_polling_duration,omitempty"` // seconds
	MaintenanceInfo        *MaintenanceInfo `json:"maintenance_info,omitempty"`
	Schemas                *Schemas         `json:"schemas,omitempty"`

	Unpublished `json:"-"`
}

// Version returns the plan's maintenance version; empty if it has none.
func (p Plan) Version() string {
	if p.MaintenanceInfo == nil {
		return ""
	}
	return p.MaintenanceInfo.Version
}

// Unpublished holds the members of a plan that platforms are not told.
type Unpublished struct {
	// TypicalDuration is how long a provision takes, in seconds; 0 if that is not known.
	// Clients are told to wait that long before the first poll.
	TypicalDuration int `json:"typical_duration,omitempty"`
	// Asynchronous and AsynchronousBinding say whether the plan's operations on instances and
	// on bindings are answered asynchronously.
	Asynchronous        Mode `json:"asynchronous"`
	AsynchronousBinding Mode `json:"asynchronous_binding"`
	// RestoreParameter is the parameter of a provision that names the instance to
	// restore; empty if the plan restores none.
	RestoreParameter string `json:"restore_parameter,omitempty"`
	// RequiresApp refuses service keys (BIND-10).
	RequiresApp bool `json:"requires_app,omitempty"`
	// Settings are fixed by the operator; users can never override them. Their members belong
	// to the provider, and are as encoding/json decodes them.
	Settings map[string]any `json:"settings,omitempty"`
	// Snapshot is the plan in its provider's own form, which instances record; nil for none.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
}

// A Mode says whether work is answered asynchronously.
type Mode string

// The modes.
const (
	Never    Mode = "never"    // always done within the request
	Allowed  Mode = "allowed"  // asynchronous if the platform allows it
	Required Mode = "required" // refused if the platform does not allow it (AsyncRequired)
)

// MaintenanceInfo is the plan's maintenance version (CAT-24).
type MaintenanceInfo struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

// Schemas are the JSON schemas of the parameters that users may set (CAT-20).
type Schemas struct {
	ServiceInstance map[Verb]*ParametersSchema `json:"service_instance,omitempty"` // of Create and Update
	ServiceBinding  map[Verb]*ParametersSchema `json:"service_binding,omitempty"`  // of Create, which is a bind
}

// For returns the schema of a verb's parameters; nil allows everything.
func (s *Schemas) For(v Verb) *ParametersSchema {
	switch {
	case s == nil:
		return nil
	case v == Bind:
		return s.ServiceBinding[Create]
	}
	return s.ServiceInstance[v]
}

// A Verb is the request for which parameters are given.
type Verb string

// The verbs that have schemas.
const (
	Create Verb = "create"
	Update Verb = "update"
	Bind   Verb = "bind"
)

// A ParametersSchema wraps one schema.
type ParametersSchema struct {
	Parameters json.RawMessage `json:"parameters"`
}
