package demo

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/longshore/longshore/internal/provider"
)

// domain is where nothing will ever answer (RFC 2606).
const domain = ".demo.longshore.example"

// grantOf is what the binding gives, and the password in it. It follows from
// the ids and the secret alone, so that each step gives the same.
func grantOf(b provider.Binding, name string) (*provider.Grant, string, error) {
	password, err := derived(b.Secret, "password of "+name)
	if err != nil {
		return nil, "", err
	}
	instance := instanceName(b.Instance)
	g := &provider.Grant{Credentials: map[string]any{}}
	form, ok := b.Instance.Settings["grant"]
	switch {
	case ok && form == "volume":
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
		return g, password, nil
	case ok && form == "route":
		if b.Route != "" { // BIND-32
			g.RouteServiceURL = "https://" + instance + domain + "/"
			return g, password, nil
		}
	case ok && form == "syslog":
		if b.AppGUID != "" { // BIND-31: there is nothing to drain for a service key
			g.SyslogDrainURL = "syslog-tls://" + instance + domain + ":6514"
			return g, password, nil
		}
	case ok:
		return nil, "", provider.Failf(`The plan's setting "grant" is not "volume", "route" or "syslog". Ask the operator of the service.`)
	}
	uri := url.URL{Scheme: "demo", User: url.UserPassword(name, password), Host: instance + domain, Path: "/"}
	g.Credentials = map[string]any{
		"username": name,
		"password": password,
		"uri":      uri.String(),
		"instance": instance,
	}
	return g, password, nil
}

// derived is 192 bits that follow from the secret and do not tell it.
func derived(secret []byte, label string) (string, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "longshore-demo v1 "+label, 24)
	return base64.RawURLEncoding.EncodeToString(key), err
}

// A Verifier recognises a password without holding it.
type Verifier struct {
	Salt string `json:"salt"`
	// Sum is the HMAC-SHA256 of the password, keyed by the salt, in hex.
	Sum string `json:"sum"`
}

func newVerifier(secret []byte, name, password string) (*Verifier, error) {
	salt, err := derived(secret, "salt of "+name)
	return &Verifier{Salt: salt, Sum: verifierSum(salt, password)}, err
}

func verifierSum(salt, password string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(password))
	return hex.EncodeToString(mac.Sum(nil))
}

func (v *Verifier) accepts(password string) bool {
	return v != nil && hmac.Equal([]byte(v.Sum), []byte(verifierSum(v.Salt, password)))
}

func (v *Verifier) same(o *Verifier) bool {
	if v == nil || o == nil {
		return v == o
	}
	return *v == *o
}
