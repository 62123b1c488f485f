package osb

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
)

// bind answers a PUT of a binding (BIND-*, ROT-*).
func bind(ctx context.Context, c *call) (response, error) {
	b, id := c.body, c.body.required
	q := broker.BindRequest{Caller: c.Caller, InstanceID: c.key.Instance, BindingID: c.key.Binding}
	if c.version >= renewal { // older clients do not know the member: it is ignored like any unknown one
		if q.Predecessor = b.text("predecessor_binding_id"); q.Predecessor != "" {
			id = b.text // ROT-02
		}
	}
	q.ServiceID, q.PlanID, q.AppGUID = id("service_id"), id("plan_id"), b.emptied("app_guid")
	resource := b.within("bind_resource")
	app := resource.emptied("app_guid")
	q.Route = resource.emptied("route")
	if b.err = resource.err; q.AppGUID != "" && app != "" && q.AppGUID != app { // BIND-09
		b.refuse("The members app_guid and bind_resource.app_guid differ.")
	}
	q.AppGUID = cmp.Or(q.AppGUID, app)
	q.Context, q.Parameters = b.object("context", limits.Context), b.object("parameters", limits.Parameters)
	if b.err != nil {
		return response{}, b.err
	}
	r, err := c.Broker.Bind(ctx, q)
	answer, err := changed(r, err)
	if err == nil && r.Effect != broker.Accepted { // an accepted binding has no credentials yet (BIND-21)
		answer.body = grantBody(r.Grant, c.version)
	}
	return answer, err
}

// getBinding answers a GET of a binding (GETB-01).
func getBinding(ctx context.Context, c *call) (response, error) {
	v, err := c.Broker.View(ctx, c.Caller, c.key.Instance, c.key.Binding)
	if err != nil {
		return response{}, err
	}
	body := grantBody(v.Grant, c.version)
	body.Parameters = v.Parameters
	return response{status: http.StatusOK, body: body}, nil
}

// A bindingBody is the grant of a binding, limited to the members that the client's version
// knows.
type bindingBody struct {
	Credentials     map[string]any      `json:"credentials,omitempty"`
	SyslogDrainURL  string              `json:"syslog_drain_url,omitempty"`
	RouteServiceURL string              `json:"route_service_url,omitempty"`
	VolumeMounts    any                 `json:"volume_mounts,omitempty"`
	Endpoints       []provider.Endpoint `json:"endpoints,omitempty"`
	Metadata        *bindingMetadata    `json:"metadata,omitempty"`
	Parameters      json.RawMessage     `json:"parameters,omitempty"`
}

type bindingMetadata struct {
	ExpiresAt   string `json:"expires_at,omitempty"`
	RenewBefore string `json:"renew_before,omitempty"`
}

// metadataTime always has a fraction of a second, as BIND-27 asks.
const metadataTime = "2006-01-02T15:04:05.0Z"

func grantBody(g *provider.Grant, v version) *bindingBody {
	body := &bindingBody{
		Credentials: g.Credentials, SyslogDrainURL: g.SyslogDrainURL, RouteServiceURL: g.RouteServiceURL,
	}
	switch {
	case len(g.VolumeMounts) == 0:
	case v < volumeMounts:
		body.VolumeMounts = experimental(g.VolumeMounts)
	default:
		body.VolumeMounts = g.VolumeMounts
	}
	if v >= endpoints {
		body.Endpoints = g.Endpoints
	}
	if v >= expiry && !g.ExpiresAt.IsZero() {
		body.Metadata = &bindingMetadata{ExpiresAt: stamp(g.ExpiresAt)}
		if v >= renewal && !g.RenewBefore.IsZero() {
			body.Metadata.RenewBefore = stamp(g.RenewBefore)
		}
	}
	return body
}

func stamp(t time.Time) string { return t.UTC().Format(metadataTime) }

// An experimentalMount is a volume mount in the form of versions before 2.10, which differs
// altogether (BIND-35).
type experimentalMount struct {
	ContainerPath string             `json:"container_path"`
	Mode          string             `json:"mode"`
	Private       experimentalVolume `json:"private"`
}

type experimentalVolume struct {
	Driver  string `json:"driver"`
	GroupID string `json:"group_id"`
	Config  string `json:"config"` // JSON in a string
}

func experimental(mounts []provider.VolumeMount) []experimentalMount {
	out := make([]experimentalMount, len(mounts))
	for i, m := range mounts {
		config, err := json.Marshal(m.Device.MountConfig)
		if err != nil || m.Device.MountConfig == nil {
			config = []byte("{}")
		}
		out[i] = experimentalMount{
			ContainerPath: m.ContainerDir, Mode: m.Mode,
			Private: experimentalVolume{Driver: m.Driver, GroupID: m.Device.VolumeID, Config: string(config)},
		}
	}
	return out
}
