package conformance

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// instant is the form of the times in a binding's metadata.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$`)

// expiry wants the times of a binding to be well formed, and the renewal not to
// come after the end.
func expiry(_ *scene, a response) (string, string) {
	times := map[string]time.Time{}
	for _, name := range []string{"expires_at", "renew_before"} {
		v, ok := find(a.body, "metadata."+name)
		if !ok {
			continue
		}
		t, ok := instantOf(v)
		if !ok {
			return "metadata." + name + " of the form 2030-01-31T23:59:59.0Z", a.String()
		}
		times[name] = t
	}
	if end := times["expires_at"]; !end.IsZero() && times["renew_before"].After(end) {
		return "metadata.renew_before not after expires_at", a.String()
	}
	return "", ""
}

// instantOf parses a time of a binding's metadata. Comparing the texts would not do: fractions may
// have any number of digits.
func instantOf(v any) (time.Time, bool) {
	text, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil && instant.MatchString(text)
}

// endpoints wants the endpoints, if there are any, to be as the specification says.
func endpoints(_ *scene, a response) (string, string) {
	v, ok := a.body["endpoints"]
	if !ok {
		return "", ""
	}
	items, ok := v.([]any)
	if !ok {
		return "endpoints to be an array", a.String()
	}
	for _, item := range items {
		o, _ := item.(object)
		ports, _ := o["ports"].([]any)
		if text(o, "host") == "" || len(ports) == 0 {
			return "each endpoint to have a host and ports", a.String()
		}
		for _, port := range ports {
			if typeOf(port) != "string" {
				return "the ports of endpoints to be texts", a.String()
			}
		}
		if p := text(o, "protocol"); p != "" && p != "tcp" && p != "udp" && p != "all" {
			return "the protocol of an endpoint to be tcp, udp or all", a.String()
		}
	}
	return "", ""
}

// volumes wants volume mounts in the form of version 2.10 and later.
func volumes(_ *scene, a response) (string, string) {
	mounts, _ := a.body["volume_mounts"].([]any)
	if len(mounts) == 0 {
		return "an array of volume_mounts", a.String()
	}
	for _, item := range mounts {
		o, _ := item.(object)
		device, _ := o["device"].(object)
		switch mode := text(o, "mode"); {
		case text(o, "driver") == "" || text(o, "container_dir") == "":
			return "each volume mount to have a driver and a container_dir", a.String()
		case mode != "r" && mode != "rw":
			return "the mode of a volume mount to be r or rw", a.String()
		case text(o, "device_type") != "shared":
			return "the device_type of a volume mount to be shared", a.String()
		case text(device, "volume_id") == "":
			return "the device of a volume mount to have a volume_id", a.String()
		}
	}
	return "", ""
}

// experimental wants volume mounts in the form before version 2.10.
func experimental(_ *scene, a response) (string, string) {
	mounts, _ := a.body["volume_mounts"].([]any)
	if len(mounts) == 0 {
		return "an array of volume_mounts", a.String()
	}
	for _, item := range mounts {
		o, _ := item.(object)
		if text(o, "container_path") == "" || text(o, "private.driver") == "" || text(o, "private.group_id") == "" {
			return "each volume mount to have container_path, private.driver and private.group_id", a.String()
		}
		if v, ok := find(o, "private.config"); ok && typeOf(v) != "string" {
			return "private.config to be a text", a.String()
		}
	}
	return "", ""
}

// drained wants the binding to have a log drain.
func drained(_ *scene, a response) (string, string) {
	if text(a.body, "syslog_drain_url") == "" {
		return "a syslog_drain_url", a.String()
	}
	return "", ""
}

// drain wants the URL of the log drain to have a scheme that platforms speak.
func drain(_ *scene, a response) (string, string) {
	u := text(a.body, "syslog_drain_url")
	for _, scheme := range []string{"syslog://", "syslog-tls://", "https://"} {
		if strings.HasPrefix(u, scheme) {
			return "", ""
		}
	}
	return "a syslog_drain_url that begins with syslog://, syslog-tls:// or https://", a.String()
}

// unasked wants the binding to give nothing that the offering did not require permission for.
func unasked(s *scene, a response) (string, string) {
	for member, permission := range map[string]string{"syslog_drain_url": "syslog_drain", "route_service_url": "route_forwarding",
		"volume_mounts": "volume_mount"} {
		if v, ok := a.body[member]; ok && v != nil && !s.plan.service.requires(permission) {
			return "no " + member + " from an offering that does not require " + permission, a.String()
		}
	}
	return "", ""
}

// granted checks the first answer that had the binding's grant: a broker may return it only once.
func granted(look test) func(s *scene) {
	return func(s *scene) {
		if wanted, got := look(s, response{status: http.StatusOK, body: s.grant, secrets: &s.secrets}); wanted != "" {
			s.fail(s.Rule(), "PUT or GET "+s.text(binding), wanted, got)
		}
	}
}

func sameGrant(s *scene, a response) (string, string) {
	for _, member := range grantMembers {
		if !same(s.grant[member], a.body[member]) {
			return "the same " + member + " as the first answer had", "others"
		}
	}
	return "", ""
}
