package osb

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
)

func (s *Server) getCatalog(_ context.Context, c *call) (response, error) {
	rep, err := c.shown.as(c.version.knows(rotatable))
	if err != nil {
		return response{}, err
	}
	// What was kept may be used again once its tag has been asked about: no-store
	// would have clients throw away what the tag is of (CAT-30).
	header := []header{{"ETag", rep.etag}, {"Vary", headerVersion}, {"Cache-Control", "no-cache"}}
	if noneMatch(c.Header.Values("If-None-Match"), rep.etag) { // CAT-30
		return response{status: http.StatusNotModified, header: header}, nil
	}
	return response{status: http.StatusOK, header: header, raw: rep.body}, nil
}

// noneMatch reports whether the client has what the tag is of (RFC 9110, section
// 13.1.2). Proxies that encode an answer make its tag a weak one.
func noneMatch(headers []string, etag string) bool {
	for _, h := range headers {
		for tag := range strings.SplitSeq(h, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// provision answers a PUT of an instance (PROV-*).
func (s *Server) provision(ctx context.Context, c *call) (response, error) {
	q := broker.ProvisionRequest{Caller: c.Caller, InstanceID: c.instanceID()}
	err := firstError(
		read(&q.ServiceID, c.body.required, "service_id"),
		read(&q.PlanID, c.body.required, "plan_id"),
		read(&q.OrganizationGUID, c.body.text, "organization_guid"),
		read(&q.SpaceGUID, c.body.text, "space_guid"),
	)
	if err != nil {
		return response{}, err
	}
	if q.Context, err = c.body.context(); err != nil {
		return response{}, err
	}
	if err := placement(&q, c.version, c.body); err != nil {
		return response{}, err
	}
	if q.Parameters, err = c.body.parameters(); err != nil {
		return response{}, err
	}
	if q.MaintenanceVersion, err = c.body.maintenance(c.version); err != nil {
		return response{}, err
	}
	r, err := s.Broker.Provision(ctx, q)
	return s.changed(r, err)
}

// placement requires the two guids, or, from the oldest clients, a context in
// their place (PROV-15, PROV-16).
func placement(q *broker.ProvisionRequest, v version, body object) error {
	if q.OrganizationGUID != "" && q.SpaceGUID != "" {
		return nil
	}
	if v.knows(placementRequired) || q.Context == nil {
		return lifecycle.Refuse(lifecycle.BadRequest, "The members organization_guid and space_guid are required.")
	}
	place, err := body.members("context")
	if err != nil {
		return err
	}
	for name, into := range map[string]*string{"organization_guid": &q.OrganizationGUID, "space_guid": &q.SpaceGUID} {
		var guid string
		if raw, ok := place.member(name); ok && *into == "" && json.Unmarshal(raw, &guid) == nil {
			*into = guid
		}
		if err := within("context."+name, len(*into), limits.Identifier); err != nil {
			return err
		}
	}
	return nil
}

// update answers a PATCH of an instance (UPD-*).
func (s *Server) update(ctx context.Context, c *call) (response, error) {
	q := broker.UpdateRequest{Caller: c.Caller, InstanceID: c.instanceID()}
	err := firstError(
		read(&q.ServiceID, c.body.required, "service_id"),
		read(&q.PlanID, c.body.text, "plan_id"),
	)
	if err != nil {
		return response{}, err
	}
	if q.Context, err = c.body.context(); err != nil {
		return response{}, err
	}
	// What was before is advice that changes nothing; its type is checked
	// (UPD-18).
	if _, err = c.body.object("previous_values"); err != nil {
		return response{}, err
	}
	if q.Parameters, err = c.body.parameters(); err != nil {
		return response{}, err
	}
	if q.MaintenanceVersion, err = c.body.maintenance(c.version); err != nil {
		return response{}, err
	}
	r, err := s.Broker.Update(ctx, q)
	if !c.version.knows(updatedDashboard) {
		r.DashboardURL = ""
	}
	return s.changed(r, err)
}

// deprovision answers a DELETE of an instance (DEPR-*).
func (s *Server) deprovision(ctx context.Context, c *call) (response, error) {
	service, plan := c.query.Get("service_id"), c.query.Get("plan_id")
	if service == "" || plan == "" { // DEPR-05
		return response{}, lifecycle.RefuseIDsMissing()
	}
	r, err := s.Broker.Delete(ctx, broker.DeleteRequest{Caller: c.Caller, InstanceID: c.instanceID(), ServiceID: service,
		PlanID: plan})
	return s.changed(r, err)
}

// changed is the answer to a request that changes an instance, or unbinds.
func (s *Server) changed(r broker.Result, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	switch r.Effect {
	case broker.Created:
		return response{status: http.StatusCreated, body: changedBody{DashboardURL: r.DashboardURL}}, nil
	case broker.Accepted:
		return s.accepted(r), nil
	default:
		return response{status: http.StatusOK, body: changedBody{DashboardURL: r.DashboardURL}}, nil
	}
}

type changedBody struct {
	DashboardURL string `json:"dashboard_url,omitempty"`
	Operation    string `json:"operation,omitempty"`
}

// accepted is a 202: the token, and where and when to look (FAC-01).
func (s *Server) accepted(r broker.Result) response {
	token := r.Token.String()
	return response{
		status: http.StatusAccepted,
		header: []header{{"Location", location("operations", token)}, {"Retry-After", seconds(r.RetryAfter)}},
		body:   changedBody{DashboardURL: r.DashboardURL, Operation: token},
	}
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
	MaintenanceInfo *catalog.MaintenanceInfo `json:"maintenance_info,omitempty"` // from 2.17 on
}

// getInstance answers a GET of an instance (GETI-*). The ids of the query are hints
// that it has no use for (GETI-09).
func (s *Server) getInstance(ctx context.Context, c *call) (response, error) {
	v, err := s.Broker.Instance(ctx, c.Caller, c.instanceID())
	if err != nil {
		return response{}, err
	}
	body := instanceBody{ServiceID: v.ServiceID, PlanID: v.PlanID, DashboardURL: v.DashboardURL, Parameters: v.Parameters}
	if c.version.knows(maintenanceShown) && v.MaintenanceVersion != "" {
		body.MaintenanceInfo = &catalog.MaintenanceInfo{Version: v.MaintenanceVersion}
	}
	return response{status: http.StatusOK, body: body}, nil
}

// read reads a member into place, for firstError.
func read(into *string, from func(string) (string, error), name string) error {
	s, err := from(name)
	*into = s
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
