package cloudcontroller

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

const hidden = "(left out)"

// leftOut are the members of answers that are left out as a whole, since they may hold a secret.
var leftOut = []string{"credentials", "parameters", "dashboard_client", "mount_config", "syslog_drain_url", "route_service_url"}

// redacted returns a value without the members that may be secret.
func redacted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if out[name] = redacted(member); member != nil && slices.Contains(leftOut, name) {
				out[name] = hidden
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for n := range v {
			out[n] = redacted(v[n])
		}
		return out
	default:
		return v
	}
}

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded from JSON
	return strings.TrimSpace(b.String())
}

// shortestSecret is the shortest text that counts as a secret: the places where a shorter one is
// hidden would reveal it.
const shortestSecret = 6

// secrets are texts that must not be shown, wherever the broker says them.
type secrets struct {
	mu    sync.Mutex
	known []string
}

func (s *secrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(secret) >= shortestSecret && !slices.Contains(s.known, secret) {
		s.known = append(s.known, secret)
		// The longest first: one may be a part of another.
		slices.SortFunc(s.known, func(a, b string) int { return len(b) - len(a) })
	}
}

// learn adds the texts of the credentials in an answer.
func (s *secrets) learn(body map[string]any) {
	if c, ok := body["credentials"]; ok {
		s.texts(c)
	}
}

func (s *secrets) texts(v any) {
	switch v := v.(type) {
	case string:
		s.add(v)
	case map[string]any:
		for _, member := range v {
			s.texts(member)
		}
	case []any:
		for _, item := range v {
			s.texts(item)
		}
	}
}

func (s *secrets) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.known {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
