// Package grants defines the parts of a grant that are not credentials.
package grants

// A VolumeMount has the form of version 2.10 and later (BIND-34).
type VolumeMount struct {
	Driver       string       `json:"driver"`
	ContainerDir string       `json:"container_dir"`
	Mode         string       `json:"mode"`        // r or rw
	DeviceType   string       `json:"device_type"` // shared
	Device       VolumeDevice `json:"device"`
}

// A VolumeDevice names the device that is mounted.
type VolumeDevice struct {
	VolumeID    string         `json:"volume_id"`
	MountConfig map[string]any `json:"mount_config,omitempty"`
}

// An Endpoint is a network address that the application may reach (BIND-26).
type Endpoint struct {
	Host     string   `json:"host"`
	Ports    []string `json:"ports"`
	Protocol string   `json:"protocol,omitempty"` // tcp unless set
}
