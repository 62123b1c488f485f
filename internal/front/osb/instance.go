package osb

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
)

func getCatalog(_ context.Context, c *call) (response, error) {
	answer, err := c.shown.answers[c.version >= rotatable]()
	if err != nil {
		return answer, err
	}
	// The client may have the answer already (CAT-30). A tag has its quotes, so that no other tag contains it; proxies that
	// compress an answer put W/ before its tag (RFC 9110, section 13.1.2).
	tag := answer.header[0].value
	if slices.ContainsFunc(c.Header.Values("If-None-Match"), func(has string) bool {
		return has == "*" || strings.Contains(has, tag)
	}) {
		answer.status, answer.raw = http.StatusNotModified, nil
	}
	return answer, nil
}

// provision answers a PUT of an instance (PROV-*).
func provision(ctx context.Context, c *call) (response, error) {
	b := c.body
	q := broker.ProvisionRequest{
		Caller: c.Caller, InstanceID: c.key.Instance, ServiceID: b.required("service_id"), PlanID: b.required("plan_id"),
		OrganizationGUID: b.text("organization_guid"), SpaceGUID: b.text("space_guid"),
		Context: b.object("context", limits.Context),
	}
	placement(&q, c.version, b)
	q.Parameters, q.MaintenanceVersion = b.object("parameters", limits.Parameters), b.maintenance(c.version)
	if b.err != nil {
		return response{}, b.err
	}
	return changed(c.Broker.Provision(ctx, q))
}

// placement requires the two GUIDs; clients of the oldest version may send a context in their place
// (PROV-15, PROV-16).
func placement(q *broker.ProvisionRequest, v version, b *object) {
	if q.OrganizationGUID != "" && q.SpaceGUID != "" {
		return
	}
	if v >= placementRequired || q.Context == nil {
		b.refuse("The members organization_guid and space_guid are required.")
	}
	place := b.within("context")
	for name, into := range map[string]*string{"organization_guid": &q.OrganizationGUID, "space_guid": &q.SpaceGUID} {
		var guid string
		if raw, ok := place.member(name); ok && *into == "" && json.Unmarshal(raw, &guid) == nil {
			*into = guid
		}
		b.bound("context."+name, len(*into), limits.Identifier)
	}
}

// update answers a PATCH of an instance (UPD-*).
func update(ctx context.Context, c *call) (response, error) {
	b := c.body
	q := broker.UpdateRequest{
		Caller: c.Caller, InstanceID: c.key.Instance, ServiceID: b.required("service_id"), PlanID: b.text("plan_id"),
		Context: b.object("context", limits.Context),
	}
	b.object("previous_values", limits.Body) // advice that has no effect: only its type is checked (UPD-18)
	q.Parameters, q.MaintenanceVersion = b.object("parameters", limits.Parameters), b.maintenance(c.version)
	if b.err != nil {
		return response{}, b.err
	}
	r, err := c.Broker.Update(ctx, q)
	if c.version < updatedDashboard {
		r.DashboardURL = ""
	}
	return changed(r, err)
}

// deprovision answers a DELETE of an instance (DEPR-*).
func deprovision(ctx context.Context, c *call) (response, error) {
	if c.query.Get("service_id") == "" || c.query.Get("plan_id") == "" { // DEPR-05
		return response{}, lifecycle.RefuseIDsMissing()
	}
	return remove(ctx, c)
}

// remove answers a DELETE of a binding (UNB-*) or of an instance. The order of an unbind's refusals
// depends on what exists, so the broker checks the ids (UNB-04).
func remove(ctx context.Context, c *call) (response, error) {
	return changed(c.Broker.Delete(ctx, broker.DeleteRequest{
		Caller: c.Caller, InstanceID: c.key.Instance, BindingID: c.key.Binding,
		ServiceID: c.query.Get("service_id"), PlanID: c.query.Get("plan_id"),
	}))
}

// changed builds the answer to a request that changes an instance, or removes a binding.
func changed(r broker.Result, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	body := changedBody{DashboardURL: r.DashboardURL}
	switch r.Effect {
	case broker.Created:
		return response{status: http.StatusCreated, body: body}, nil
	case broker.Accepted: // the answer carries the token, and says where and when to poll (FAC-01)
		body.Operation = r.Token.String()
		return response{status: http.StatusAccepted, header: lookAt(r.Token, r.RetryAfter), body: body}, nil
	default:
		return response{status: http.StatusOK, body: body}, nil
	}
}

type changedBody struct {
	DashboardURL string `json:"dashboard_url,omitempty"`
	Operation    string `json:"operation,omitempty"`
}

// lookAt returns the headers that say where and when to poll an operation.
func lookAt(token lifecycle.Token, after time.Duration) []header {
	return []header{{"Location", "/operations/" + url.PathEscape(token.String())}, {"Retry-After", seconds(after)}}
}

// seconds rounds up: polling a little late costs less than once too often.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

type instanceBody struct {
	ServiceID       string                   `json:"service_id"`
	PlanID          string                   `json:"plan_id"`
	DashboardURL    string                   `json:"dashboard_url,omitempty"`
	Parameters      json.RawMessage          `json:"parameters,omitempty"`
	MaintenanceInfo *catalog.MaintenanceInfo `json:"maintenance_info,omitempty"` // for clients of 2.17 or later
}

// getInstance answers a GET of an instance (GETI-*). The ids in the query are hints that it does
// not need (GETI-09).
func getInstance(ctx context.Context, c *call) (response, error) {
	v, err := c.Broker.View(ctx, c.Caller, c.key.Instance, "")
	if err != nil {
		return response{}, err
	}
	a := v.Attributes
	body := instanceBody{ServiceID: a.ServiceID, PlanID: a.PlanID, DashboardURL: a.DashboardURL, Parameters: v.Parameters}
	if c.version >= maintenanceShown && a.MaintenanceVersion != "" {
		body.MaintenanceInfo = &catalog.MaintenanceInfo{Version: a.MaintenanceVersion}
	}
	return response{status: http.StatusOK, body: body}, nil
}
