package cloudcontroller

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
)

// platform is the name of Cloud Foundry in contexts and identities.
const platform = "cloudfoundry"

// A ProvisionRequest asks for an instance.
type ProvisionRequest struct {
	ID, ServiceID, PlanID       string
	OrganizationGUID, SpaceGUID string
	Parameters                  map[string]any
}

// Provision makes an instance and waits until it exists. If it fails, it deletes what may have been
// made before it returns its *Failure.
func (c *Client) Provision(ctx context.Context, q ProvisionRequest) error {
	i := Instance{ID: q.ID, ServiceID: q.ServiceID, PlanID: q.PlanID, OrganizationGUID: q.OrganizationGUID,
		SpaceGUID: q.SpaceGUID}
	t, i, err := c.take(key{instance: q.ID}, Asked, &i)
	if err != nil {
		return err
	}
	body := map[string]any{
		"service_id": q.ServiceID, "plan_id": q.PlanID, "organization_guid": q.OrganizationGUID, "space_guid": q.SpaceGUID,
		"context": i.context(),
	}
	if _, p, ok := c.plan(q.ServiceID, q.PlanID); ok && p.MaintenanceInfo != nil && c.minor() >= 15 {
		body["maintenance_info"] = map[string]any{"version": p.MaintenanceInfo.Version}
	}
	_, err = c.create(ctx, t, i, c.asked(http.MethodPut, t.key, Provision, body, q.Parameters), nil)
	return err
}

// context returns the context object of an instance: where it is on the platform.
func (i Instance) context() map[string]any {
	return map[string]any{"platform": platform, "organization_guid": i.OrganizationGUID, "space_guid": i.SpaceGUID,
		"instance_name": i.ID}
}

// asked returns a request for the user that permits an asynchronous answer.
func (c *Client) asked(method string, k key, kind Kind, body, parameters map[string]any) request {
	if parameters != nil {
		body["parameters"] = parameters
	}
	q := request{method: method, path: k.path(), body: body, user: true, query: url.Values{}}
	if c.mayWait(kind) {
		q.query.Set("accepts_incomplete", "true")
	}
	return q
}

// create sends a request that makes something, and follows it to its end.
func (c *Client) create(ctx context.Context, t turn, i Instance, q request, requires []string) (response, error) {
	k := t.create()
	a := c.send(ctx, q)
	v := judge(k, c.minor(), a, requires)
	if v.accepted && !c.mayWait(k) {
		v = verdict{mitigate: true, problem: "The broker answers later, which it was not allowed to."}
	}
	switch {
	case v.accepted:
		c.tell(a, "polls")
		c.state(t, Creating)
		return c.created(ctx, t, i, a)
	case v.done:
		c.tell(a, "the %s has succeeded", k)
		c.now(t, func(i *Instance) {
			i.State = Ready
			i.DashboardURL = a.text("dashboard_url")
		})
		return a, nil
	}
	failure := a.failure(k, v)
	if !v.mitigate {
		c.tell(a, "the %s has failed, and nothing was made", k)
		c.gone(t)
		failure.Then = thenNothing
		return a, failure
	}
	c.tell(a, "the %s has failed, and may have left an orphan", k)
	failure.Then = c.mitigate(ctx, t, i)
	return a, failure
}

// created waits for the end of an accepted creation.
func (c *Client) created(ctx context.Context, t turn, i Instance, accepted response) (response, error) {
	k := t.create()
	end, err := c.poll(ctx, t, k, i, accepted)
	switch {
	case err != nil:
		return accepted, err
	case end.succeeded:
		if k == Provision { // a binding is ready only once it has been fetched
			c.state(t, Ready)
		}
		return accepted, nil
	}
	failure := end.failure(k)
	if c.KeepFailed && end.status != 0 { // the operation itself has ended, rather than the time to poll it
		c.state(t, CreateFailed)
		failure.Then = thenUser
		return accepted, failure
	}
	failure.Then = c.mitigate(ctx, t, i)
	return accepted, failure
}

// An UpdateRequest asks for another plan, other parameters, or both.
type UpdateRequest struct {
	ID         string
	PlanID     string // the same if empty
	Parameters map[string]any
}

// Update changes an instance and waits for the result. If it fails, the instance stays as it was,
// as far as the platform knows.
func (c *Client) Update(ctx context.Context, q UpdateRequest) error {
	t, i, err := c.take(key{instance: q.ID}, Updating, nil, Ready)
	if err != nil {
		return err
	}
	if s, p, known := c.plan(i.ServiceID, i.PlanID); q.PlanID != "" && q.PlanID != i.PlanID && known && !s.canChange(p) {
		c.state(t, Ready)
		return &Refused{"The service does not support changing plans."} // SIM-11
	}
	body := map[string]any{
		"service_id": i.ServiceID, "plan_id": cmp.Or(q.PlanID, i.PlanID), "context": i.context(),
		"previous_values": map[string]any{
			"service_id": i.ServiceID, "plan_id": i.PlanID, "organization_id": i.OrganizationGUID, "space_id": i.SpaceGUID,
		},
	}
	a := c.send(ctx, c.asked(http.MethodPatch, t.key, Update, body, q.Parameters))
	v := judge(Update, c.minor(), a, nil)
	failure := a.failure(Update, v)
	if v.accepted {
		c.tell(a, "polls")
		end, err := c.poll(ctx, t, Update, i, a) // within the limit of the plan that it had (POLL-02)
		if err != nil {
			c.state(t, Ready) // the platform will not ask any more how it ends
			return err
		}
		v.done = end.succeeded
		failure = end.failure(Update)
	} else if v.done {
		c.tell(a, "the update has succeeded")
	} else {
		c.tell(a, "the update has failed")
	}
	c.now(t, func(i *Instance) {
		if i.State = Ready; v.done { // POLL-09
			i.PlanID = cmp.Or(q.PlanID, i.PlanID)
		}
	})
	if v.done {
		return nil
	}
	failure.Then = thenKept
	return failure
}

// Deprovision removes the bindings of an instance, deletes the instance and waits until it is gone.
// It works while the instance is being made, too. If it fails, the instance stays in the account.
func (c *Client) Deprovision(ctx context.Context, id string) error {
	for _, b := range c.Bindings() { // SIM-20
		if b.InstanceID == id {
			if err := c.Unbind(ctx, id, b.ID); err != nil {
				return err
			}
		}
	}
	return c.remove(ctx, key{instance: id})
}

// remove deletes an instance or a binding.
func (c *Client) remove(ctx context.Context, what key) error {
	k := what.remove()
	t, i, err := c.take(what, Deleting, nil, Ready, Creating, CreateFailed, DeleteFailed, Orphaned, GivenUp)
	if err != nil {
		return err
	}
	a := c.send(ctx, c.deletion(what, i, c.mayWait(k), true))
	v := judge(k, c.minor(), a, nil)
	failure := a.failure(k, v)
	switch {
	case v.accepted:
		c.tell(a, "polls")
		end, err := c.poll(ctx, t, k, i, a)
		if err != nil {
			c.state(t, DeleteFailed) // the user can ask for it again
			return err
		}
		v.done = end.succeeded
		failure = end.failure(k)
	case v.done:
		c.tell(a, "the %s has succeeded", k)
	default:
		c.tell(a, "the %s has failed", k)
	}
	switch {
	case v.done:
		c.gone(t)
		return nil
	case v.mitigate:
		failure.Then = c.mitigate(ctx, t, i)
	default:

		c.state(t, DeleteFailed)
		failure.Then = thenKept
	}
	return failure
}

// FetchInstance fetches an instance; a broker that does not offer this must not be asked. Whatever
// the answer is, the instance stays in the account (GETI-13).
func (c *Client) FetchInstance(ctx context.Context, id string) (map[string]any, error) {
	return c.fetch(ctx, key{instance: id})
}

// FetchBinding fetches a binding with its credentials.
func (c *Client) FetchBinding(ctx context.Context, instance, id string) (map[string]any, error) {
	return c.fetch(ctx, key{instance, id})
}

func (c *Client) fetch(ctx context.Context, what key) (map[string]any, error) {
	a := c.send(ctx, request{method: http.MethodGet, path: what.path(), user: true})
	if a.status != http.StatusOK || a.body == nil {
		c.tell(a, "it cannot be fetched")
		f := a.failure("fetch", verdict{problem: a.fault})
		f.Then = thenKept
		return nil, f
	}
	c.tell(a, "fetched")
	return a.body, nil
}
