package conformance

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const hidden = "(left out)"

// redacted is a value without the credentials in it.
func redacted(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, member := range v {
			if name == "credentials" && member != nil || name == "dashboard_client" {
				out[name] = hidden
				continue
			}
			out[name] = redacted(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redacted(v[i])
		}
		return out
	default:
		return v
	}
}

// Lengths of the shortest texts that are taken for secrets: to hide a shorter
// one would tell it.
const (
	shortestPassword = 4
	shortestSecret   = 8
)

// secrets are the texts that no report may show, wherever the broker said them.
type secrets struct {
	mu    sync.Mutex
	known []string
	// grave are those that the broker itself must not tell out of place; the
	// rest of the credentials may be names and hosts.
	grave []string
}

func (k *secrets) add(secret string, grave bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if !slices.Contains(k.known, form) {
			k.known = append(k.known, form)
		}
		if grave && !slices.Contains(k.grave, form) {
			k.grave = append(k.grave, form)
		}
	}
}

func (k *secrets) addPassword(password string) {
	if len(password) >= shortestPassword {
		k.add(password, true)
	}
}

// telling are the names of what opens something.
var telling = regexp.MustCompile(`(?i)pass|secret|key|token|uri|url|dsn|cert`)

// learn takes the texts of the credentials in an answer, but for what the
// request has said itself.
func (k *secrets) learn(a answer) {
	said := a.path + encode(a.content)
	k.texts(a.body["credentials"], "", said)
}

func (k *secrets) texts(v any, name, said string) {
	switch v := v.(type) {
	case string:
		if len(v) >= shortestSecret && !strings.Contains(said, v) {
			k.add(v, telling.MatchString(name))
		}
	case object:
		for name, member := range v {
			k.texts(member, name, said)
		}
	case []any:
		for _, item := range v {
			k.texts(item, name, said)
		}
	}
}

// hide leaves the secrets out of a text.
func (k *secrets) hide(text string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.known {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
