package conformance

import (
	"encoding/base64"
	"net/url"
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

// shortest is the length of the shortest secret that is looked for: to hide a
// shorter one would tell it.
const shortest = 8

// secrets are the texts that no report may show, wherever the broker said them.
type secrets struct {
	mu    sync.Mutex
	known []string
}

func (k *secrets) add(secret string) {
	if len(secret) < shortest {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if !slices.Contains(k.known, form) {
			k.known = append(k.known, form)
		}
	}
}

// learn takes every text of the credentials in an answer.
func (k *secrets) learn(body object) {
	for name, v := range body {
		if name == "credentials" {
			k.texts(v)
		} else if o, ok := v.(object); ok {
			k.learn(o)
		}
	}
}

func (k *secrets) texts(v any) {
	switch v := v.(type) {
	case string:
		k.add(v)
	case object:
		for _, member := range v {
			k.texts(member)
		}
	case []any:
		for _, item := range v {
			k.texts(item)
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
