package demo

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// domain is where nothing will ever answer (RFC 2606).
const domain = ".demo.longshore.example"

// maxValidDays is the longest that credentials can be valid for: ten years.
const maxValidDays = 3650

// grantOf is what the binding gives. It follows from the ids, the password and
// when the operation began, so that each step gives the same.
func grantOf(b provider.Binding, name, password string) (*provider.Grant, error) {
	instance := instanceName(b.Instance)
	g := &provider.Grant{Credentials: map[string]any{}}
	if v, ok := b.Instance.Settings["valid_days"]; ok {
		days, ok := number(v)
		if !ok || !(days > 0 && days <= maxValidDays) {
			return nil, provider.Failf(
				`The plan's setting "valid_days" is not a number of days up to %d. Ask the operator of the service.`, maxValidDays)
		}
		valid := time.Duration(days * 24 * float64(time.Hour))
		began := b.Instance.Operation.Started.UTC()
		g.ExpiresAt, g.RenewBefore = began.Add(valid).Truncate(time.Second), began.Add(valid*3/4).Truncate(time.Second)
	}
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
		return g, nil
	case ok && form == "route":
		if b.Route != "" { // BIND-32
			g.RouteServiceURL = "https://" + instance + domain + "/"
			return g, nil
		}
	case ok && form == "syslog":
		if b.AppGUID != "" { // BIND-31: there is nothing to drain for a service key
			g.SyslogDrainURL = "syslog-tls://" + instance + domain + ":6514"
			return g, nil
		}
	case ok:
		return nil, provider.Failf(`The plan's setting "grant" is not "volume", "route" or "syslog". Ask the operator of the service.`)
	}
	uri := url.URL{Scheme: "demo", User: url.UserPassword(name, password), Host: instance + domain, Path: "/"}
	g.Credentials = map[string]any{
		"username": name,
		"password": password,
		"uri":      uri.String(),
		"instance": instance,
	}
	return g, nil
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
