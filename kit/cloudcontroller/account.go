package cloudcontroller

import (
	"cmp"
	"slices"
)

// A State is what the platform believes about an instance or a binding. The account has no entry
// for what the platform believes to be gone.
type State string

// The states.
const (
	Asked        State = "asked" // the request to make it is not answered yet: users do not see it (SIM-05)
	Creating     State = "creating"
	Ready        State = "ready"
	Updating     State = "updating"
	Deleting     State = "deleting"
	CreateFailed State = "create failed" // left to the user
	DeleteFailed State = "delete failed"
	Orphaned     State = "orphaned" // its deletion runs or is due
	GivenUp      State = "given up" // ten retries have failed (ORP-05)
)

// An Instance is what the platform believes of a service instance.
type Instance struct {
	ID, ServiceID, PlanID       string
	OrganizationGUID, SpaceGUID string
	State                       State
	Description                 string // the last operation's (POLL-08)
	DashboardURL                string
}

// A Binding is what the platform believes of a service binding.
type Binding struct {
	InstanceID, ID string
	State          State
	Description    string
}

// A key identifies an instance, or a binding of an instance.
type key struct{ instance, binding string }

func (k key) ofInstance() key { return key{instance: k.instance} }

// path returns the segments of the resource's path.
func (k key) path(more ...string) []string {
	path := []string{"v2", "service_instances", k.instance}
	if k.binding != "" {
		path = append(path, "service_bindings", k.binding)
	}
	return append(path, more...)
}

// create and remove return the kinds of the requests that make and delete the resource.
func (k key) create() Kind {
	if k.binding != "" {
		return Bind
	}
	return Provision
}

func (k key) remove() Kind {
	if k.binding != "" {
		return Unbind
	}
	return Deprovision
}

// A record is a line of the account. It is read and written under the client's mutex. turn counts
// the requests that changed the record, so that a request that was overtaken notices.
type record struct {
	Instance
	turn int
}

// A turn is one request that changes a record.
type turn struct {
	key
	n      int
	before State
}

// take begins a request if the platform's own rules allow it. It may begin in the allowed states,
// or, with fresh, if there is no record yet.
func (c *Client) take(k key, next State, fresh *Instance, allowed ...State) (turn, Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.account[k]
	switch {
	case r == nil && fresh == nil:
		return turn{}, Instance{}, &Refused{"The platform knows of no such thing."}
	case r != nil && fresh != nil:
		return turn{}, Instance{}, &Refused{"The id is in use."}
	case fresh != nil:
		r = &record{Instance: *fresh}
		if c.account == nil {
			c.account = map[key]*record{}
		}
		c.account[k] = r
	case !slices.Contains(allowed, r.State):
		return turn{}, Instance{}, errBusy
	}
	t := turn{k, r.turn + 1, r.State}
	r.turn, r.State = t.n, next
	return t, r.Instance, nil
}

// now changes the record, and reports whether the turn is still the latest: a later request may have overtaken it.
func (c *Client) now(t turn, change func(i *Instance)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.account[t.key]
	if r == nil || r.turn != t.n {
		return false
	}
	if change != nil {
		change(&r.Instance)
	}
	return true
}

func (c *Client) state(t turn, s State) bool {
	return c.now(t, func(i *Instance) { i.State = s })
}

// gone removes the record: the platform believes that nothing is left.
func (c *Client) gone(t turn) { c.now(t, func(*Instance) { delete(c.account, t.key) }) }

// Instances returns the instances that the platform believes to exist, or is not sure of, sorted by id.
func (c *Client) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Instance
	for k, r := range c.account {
		if k.binding == "" {
			out = append(out, r.Instance)
		}
	}
	slices.SortFunc(out, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Bindings returns the bindings that the platform believes to exist, or is not sure of, sorted by instance and id.
func (c *Client) Bindings() []Binding {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Binding
	for k, r := range c.account {
		if k.binding != "" {
			out = append(out, Binding{k.instance, k.binding, r.State, r.Description})
		}
	}
	slices.SortFunc(out, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.ID, b.ID))
	})
	return out
}
