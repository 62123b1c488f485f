package lifecycle

import (
	"encoding/json"

	"github.com/longshore/longshore/internal/base/limits"
)

// Names are the names of an instance and of its place, as the platform's context gives them.
type Names struct {
	Platform     string `json:"platform,omitempty"` // the kind of platform
	Instance     string `json:"instance_name,omitempty"`
	Organization string `json:"organization_name,omitempty"`
	Space        string `json:"space_name,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
}

// NamesIn reads the names in a platform's context. If a record has no room for all of them, the
// least telling are left out.
func NamesIn(context json.RawMessage) (n Names) {
	_ = json.Unmarshal(context, &n) // a platform's own object may have any members
	for _, name := range []*string{&n.Namespace, &n.Space, &n.Organization, &n.Instance, &n.Platform} {
		if encoded, _ := json.Marshal(n); len(encoded) <= limits.Names {
			break
		}
		*name = ""
	}
	return n
}
