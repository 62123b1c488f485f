package demo

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

const (
	namePrefix = "longshore-demo"
	// domain is a domain in which no host will ever answer (RFC 2606).
	domain = ".demo.longshore.example"
)

// Names returns the names in the credentials of the instance or binding with the tags.
func Names(t provider.Tags) []string {
	role := "instance"
	if t.Binding != "" {
		role = "binding"
	}
	return []string{provider.Name(namePrefix, role, t)}
}

// grantOf returns the binding's grant. It derives from the ids, the binding's secret and the start
// of the operation, so that every step returns the same grant.
func grantOf(b provider.Binding) (*provider.Grant, error) {
	plan := settingsOf(b.Instance.Settings)
	instance := Names(provider.TagsOf(b.Instance))[0]
	g := &provider.Grant{Credentials: map[string]any{}}
	if plan.ValidDays != nil {
		valid, began := seconds(*plan.ValidDays*24*60*60), b.Instance.Operation.Started.UTC()
		g.ExpiresAt, g.RenewBefore = began.Add(valid).Truncate(time.Second), began.Add(valid*3/4).Truncate(time.Second)
	}
	switch {
	case plan.Grant == "volume":
		g.VolumeMounts = []provider.VolumeMount{{
			Driver:       namePrefix,
			ContainerDir: "/var/longshore/" + strings.TrimPrefix(instance, namePrefix+"-"),
			Mode:         "rw",
			DeviceType:   "shared",
			Device: provider.VolumeDevice{
				VolumeID:    instance,
				MountConfig: map[string]any{"source": "demo://" + instance + domain + "/volume"},
			},
		}}
	case plan.Grant == "route" && b.Route != "": // BIND-32
		g.RouteServiceURL = "https://" + instance + domain + "/"
	case plan.Grant == "syslog" && b.AppGUID != "": // BIND-31: there is nothing to drain for a service key
		g.SyslogDrainURL = "syslog-tls://" + instance + domain + ":6514"
	default:
		return g, credentials(b, instance, g.Credentials)
	}
	return g, nil
}

// credentials adds a user with a password of 192 bits. The password derives from the secret and
// does not reveal it.
func credentials(b provider.Binding, instance string, into map[string]any) error {
	if len(b.Secret) == 0 {
		return errors.New("a bind needs the binding's secret")
	}
	name := Names(provider.BindingTagsOf(b))[0]
	key, err := hkdf.Key(sha256.New, b.Secret, nil, "longshore-demo v1 password of "+name, 24)
	if err != nil {
		return err
	}
	password := base64.RawURLEncoding.EncodeToString(key)
	uri := url.URL{Scheme: "demo", User: url.UserPassword(name, password), Host: instance + domain, Path: "/"}
	into["username"], into["password"], into["uri"], into["instance"] = name, password, uri.String(), instance
	return nil
}
