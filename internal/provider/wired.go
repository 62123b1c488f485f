package provider

import (
	"encoding/json"
	"io/fs"
	"time"
)

// A Wired is a provider as a program uses it, with its inventory: the two are
// wired together or not at all.
type Wired struct {
	Provider  Provider
	Inventory Inventory
	// CallTimeout ends one call; zero for DefaultCallTimeout. With 15 s for
	// recording, it must fit into the time of the function that calls.
	CallTimeout time.Duration
	// Wait is how long a synchronous request waits for an operation to settle,
	// MaxWait at most; zero for DefaultWait.
	Wait time.Duration
}

// Times that a provider may change in its Wired.
const (
	DefaultCallTimeout = 20 * time.Second
	DefaultWait        = 15 * time.Second
	MaxWait            = 24 * time.Second
)

// A Check is what a provider finds out about a plan when the catalog is
// compiled: whether its settings and the files beside the offering are right.
// It gives the snapshot that instances of the plan record, at most
// limits.Snapshot bytes of JSON, nil for none. An error says what to do; a
// *remedy.Error also says where: a File in the offering's folder, or in Name the
// path of a setting in the plan, such as "delay". It reaches nothing but its input.
type Check func(plan Checked) (snapshot json.RawMessage, err error)

// Checked is the plan that a Check looks at.
type Checked struct {
	Offering, Plan string // their names
	ServiceID      string
	PlanID         string
	Settings       map[string]any
	// Files is the offering's folder.
	Files fs.FS
	// Maintenance is the version of the plan's maintenance_info.
	Maintenance string
}
