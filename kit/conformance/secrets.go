package conformance

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const hidden = "(left out)"

// redacted returns a value without its credentials, and without the secrets in its texts.
func (k *secrets) redacted(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, member := range v {
			if name == "credentials" && member != nil || name == "dashboard_client" {
				out[name] = hidden
				continue
			}
			out[name] = k.redacted(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = k.redacted(v[i])
		}
		return out
	case string:
		return k.hide(v)
	default:
		return v
	}
}

// shortestSecret is the least length of a text in credentials that counts as a secret. From the
// length plain on, even a text of letters alone cannot be an ordinary word.
const (
	shortestSecret = 8
	plain          = 16
)

// tellable reports whether the occurrence of a text can only be the secret: a short one, or one of
// letters alone, may be an ordinary word.
func tellable(secret string) bool {
	letters := strings.IndexFunc(secret, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
	return len(secret) >= plain || len(secret) >= shortestSecret && !letters
}

// tokenIn reports whether a secret occurs in a text, other than as a part of a longer word or number.
func tokenIn(text, secret string) bool { return len(tokens(text, secret)) > 0 }

// tokens returns the positions at which a secret occurs in a text as a whole word.
func tokens(text, secret string) []int {
	var out []int
	for at := 0; ; {
		n := strings.Index(text[at:], secret)
		if n < 0 || secret == "" {
			return out
		}
		at += n
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(secret):])
		if !inWord(before) && !inWord(after) {
			out = append(out, at)
		}
		at += len(secret)
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// secrets are texts that no report may show, wherever the broker said them.
type secrets struct {
	mu    sync.Mutex
	known []string
	// grave are the secrets that the broker itself must not reveal in the wrong place; the rest of
	// the credentials may be names and hosts.
	grave []string
}

func (k *secrets) add(secret string, grave bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if form != "" && !slices.Contains(k.known, form) {
			k.known = append(k.known, form)
		}
		if grave && tellable(form) && !slices.Contains(k.grave, form) {
			k.grave = append(k.grave, form)
		}
	}
	// The longest first: otherwise a host, once hidden, would keep the URL that it is a part of from being found.
	slices.SortFunc(k.known, func(a, b string) int { return len(b) - len(a) })
}

// unchecked notes that ERR-13 could not look for the platform's password.
func (s *scene) unchecked() {
	if !tellable(s.target.Password) {
		s.omit("the platform's password is too short, or too much of a word, to be told from other text: " +
			"whether an answer says it was not checked")
	}
}

// telling matches the names of members that hold a secret.
var telling = regexp.MustCompile(`(?i)pass|secret|key|token|uri|url|dsn|cert`)

// learn adds the texts of the credentials in an answer, except for those that the request itself contained.
func (k *secrets) learn(a response) {
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

// hide replaces the secrets in a text. Nil knows none.
func (k *secrets) hide(text string) string {
	if k == nil {
		return text
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.known {
		switch {
		case !strings.Contains(text, secret): // almost always, and there may be hundreds
		case tellable(secret):
			text = strings.ReplaceAll(text, secret, hidden)
		default: // hiding a part of a longer word would reveal that part
			for _, at := range slices.Backward(tokens(text, secret)) {
				text = text[:at] + hidden + text[at+len(secret):]
			}
		}
	}
	return text
}
