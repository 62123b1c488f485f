package provider

import (
	"context"
	"time"
)

// A Describer is a Provider that tells people about an instance.
type Describer interface {
	// Describe returns what is known of the instance now, and changes nothing. It is asked
	// while the instance is ready, even while a step is under way; as in Deprovision, in has
	// neither parameters nor an operation. An instance that does not exist, or is not ours, is
	// an error: another owner's thing is never described.
	Describe(ctx context.Context, in Instance) (Facts, error)
}

// Facts are what people see of an instance without a login to the cloud. Each member may be
// zero, for not known. None is a secret, or tells of other instances.
type Facts struct {
	Engine  string `json:"engine,omitempty"`  // with its version
	Address string `json:"address,omitempty"` // where applications reach the instance
	Region  string `json:"region,omitempty"`
	// Size is in bytes; nil for not known. So is Connections. A limit of zero means that there is none.
	Size            *int64    `json:"size,omitempty"`
	SizeLimit       int64     `json:"size_limit,omitempty"`
	Connections     *int64    `json:"connections,omitempty"`
	ConnectionLimit int64     `json:"connection_limit,omitempty"`
	LastBackup      time.Time `json:"last_backup,omitzero"`
	// Maintenance is the window of time in which the cloud may restart the instance.
	Maintenance string `json:"maintenance,omitempty"`
	// Console is the address of the instance's page in the cloud's console, for operators.
	Console string `json:"console,omitempty"`
}
