package lifecycle

import "time"

// A Retained is what is kept of an instance that its platform has deleted, by a
// rule of its plan. It is renamed with its incarnation: for its former id, it is
// absent, and another instance may have that. Only who may order in the same place
// may have it back: platform, organization and space are kept for that.
type Retained struct {
	// Version is the one that was read; 0 for what is not retained.
	Version     int64  `json:"-"`
	Key         Key    `json:"key"` // of the instance, when it lived
	Incarnation string `json:"incarnation"`
	Provider    string `json:"provider"`
	// Name is the thing's, as its provider lists it since it was renamed.
	Name             string    `json:"name"`
	ServiceID        string    `json:"service_id"`
	PlanID           string    `json:"plan_id"`
	OrganizationGUID string    `json:"organization_guid,omitempty"`
	SpaceGUID        string    `json:"space_guid,omitempty"`
	Created          time.Time `json:"created"`
	Deleted          time.Time `json:"deleted"`
	// Until is when it is to be removed, and Due when the reaper is to look.
	Until time.Time `json:"until"`
	Due   time.Time `json:"due"`
}

// Retain is what is kept of an instance for a time: to be committed with the
// tombstone that its deletion leaves, of which r is the record before it.
func (r Record) Retain(name string, now time.Time, keep time.Duration) Retained {
	until := now.Add(keep)
	return Retained{
		Key: r.Key.InstanceKey(), Incarnation: r.Incarnation, Provider: r.Provider, Name: name,
		ServiceID: r.Attributes.ServiceID, PlanID: r.Attributes.PlanID,
		OrganizationGUID: r.Attributes.OrganizationGUID, SpaceGUID: r.Attributes.SpaceGUID,
		Created: r.Created, Deleted: now, Until: until, Due: until,
	}
}

// retainedLook is how often the reaper looks at what is past its time.
const retainedLook = 24 * time.Hour

// Kept has the reaper look again in a day.
func (r Retained) Kept(now time.Time) Retained {
	r.Due = now.Add(retainedLook)
	return r
}
