package lifecycle

import "time"

// A TargetUse says that an instance is on a target. It is committed with the first record
// that names the target, and the reaper drops it some time after the instance is gone. So
// the reaper finds the targets in use without reading all records, and no two instances
// write the same TargetUse.
type TargetUse struct {
	// Version is the version that was read; 0 for none.
	Version     int64  `json:"-"`
	Provider    string `json:"provider"`
	Target      string `json:"target"` // its name
	Key         Key    `json:"key"`    // the instance's key
	Incarnation string `json:"incarnation"`
	// Due is when the reaper is to look whether the instance is still there.
	Due time.Time `json:"due"`
}

// targetLook is how often the reaper checks whether an instance is still there.
const targetLook = 30 * 24 * time.Hour

// TargetUse returns the TargetUse to commit when the record of an instance first names its target.
func (r Record) TargetUse(now time.Time) TargetUse {
	return TargetUse{
		Provider: r.Provider, Target: r.Made.Target.Name, Key: r.Key.InstanceKey(), Incarnation: r.Incarnation,
		Due: now.Add(targetLook),
	}
}

// Uses reports whether the instance is still in the target.
func (r Record) Uses(u TargetUse) bool {
	return r.Owns(u.Incarnation) && r.Made.Target.Name == u.Target
}

// Held makes the reaper look again later.
func (u TargetUse) Held(now time.Time) TargetUse {
	u.Due = now.Add(targetLook)
	return u
}
