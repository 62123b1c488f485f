package cloudcontroller

import (
	"context"
	"net/http"
)

// A BindRequest asks for a binding.
type BindRequest struct {
	InstanceID, ID string
	AppGUID        string // empty for a service key
	Parameters     map[string]any
}

// Bind makes a binding, waits until it exists and returns what the broker grants: credentials and
// the like. If it fails, it deletes what may have been made before it returns its *Failure.
func (c *Client) Bind(ctx context.Context, q BindRequest) (map[string]any, error) {
	k := key{q.InstanceID, q.ID}
	i, err := c.free(k)
	if err != nil {
		return nil, err
	}
	b := Instance{ID: q.ID, ServiceID: i.ServiceID, PlanID: i.PlanID}
	t, b, err := c.take(k, Asked, &b)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"service_id": i.ServiceID, "plan_id": i.PlanID}
	if q.AppGUID != "" { // in both places (SIM-15)
		body["app_guid"], body["bind_resource"] = q.AppGUID, map[string]any{"app_guid": q.AppGUID}
	}
	if c.minor() >= 13 {
		body["context"] = i.context()
	}
	service, _, _ := c.plan(i.ServiceID, i.PlanID)
	a, err := c.create(ctx, t, b, c.asked(http.MethodPut, k, Bind, body, q.Parameters), service.Requires)
	if err != nil || a.status != http.StatusAccepted {
		return a.body, err
	}
	return c.granted(ctx, t, b, service)
}

// free returns the instance if no operation on it is running (SIM-06).
func (c *Client) free(k key) (Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r := c.account[k.ofInstance()]; {
	case r == nil:
		return Instance{}, &Refused{"The platform knows of no such service instance."}
	case r.State != Ready:
		return Instance{}, errBusy
	default:
		return r.Instance, nil
	}
}

// granted fetches a binding that was made asynchronously. A binding that nobody can fetch counts as failed (POLL-10).
func (c *Client) granted(ctx context.Context, t turn, b Instance, s Service) (map[string]any, error) {
	a := c.send(ctx, request{method: http.MethodGet, path: t.path(), user: true})
	if a.status == http.StatusOK && a.body != nil && grantShape(a.body, s.Requires) == "" {
		c.tell(a, "the bind has succeeded")
		c.state(t, Ready)
		return a.body, nil
	}
	c.tell(a, "the bind has failed: nobody can get what it gives")
	f := a.failure(Bind, verdict{problem: "The binding was made and cannot be fetched: " + a.told.Said})
	f.Then = c.mitigate(ctx, t, b)
	return nil, f
}

// Unbind deletes a binding and waits until it is gone. If it fails, the binding stays in the account.
func (c *Client) Unbind(ctx context.Context, instance, id string) error {
	c.mu.Lock()
	if r := c.account[key{instance: instance}]; r != nil && r.State == Updating {
		c.mu.Unlock()
		return errBusy // SIM-07
	}
	c.mu.Unlock()
	return c.remove(ctx, key{instance, id})
}
