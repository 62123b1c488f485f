package osb

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Headers of the API.
const (
	headerVersion  = "X-Broker-API-Version"
	headerIdentity = "X-Broker-API-Originating-Identity"
	// HeaderRequestIdentity carries the request identity, both ways.
	HeaderRequestIdentity = "X-Broker-API-Request-Identity"
	// keptLocation names the header in which a Cloud Foundry says where its API is.
	keptLocation = "X-Api-Info-Location"
)

// The same headers in the spelling that http.Header stores: any other spelling would be rewritten
// at each access.
var (
	keptVersion         = http.CanonicalHeaderKey(headerVersion)
	keptIdentity        = http.CanonicalHeaderKey(headerIdentity)
	keptRequestIdentity = http.CanonicalHeaderKey(HeaderRequestIdentity)
)

// digits parses a short number that consists of digits only: no sign, no spaces.
func digits(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return int(n), err == nil && len(s) <= 6
}

// RequestIdentity returns the identity that every answer to a request with these headers echoes,
// errors included (RID-01). It is empty for an identity that could harm its readers (RID-04). The
// gateway echoes it when it answers in the server's place.
func RequestIdentity(h http.Header) string {
	id := h.Get(keptRequestIdentity)
	if len(id) > limits.RequestIdentity || !printable(id) {
		return ""
	}
	return id
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// asker reads who sent the request, and the decoded object of the originating identity, for audit.
// A value that cannot be read never blocks a request (OID-03).
func asker(r *http.Request) (a lifecycle.Asker, identity json.RawMessage, readable bool) {
	a.Request = RequestIdentity(r.Header)
	value := r.Header.Get(keptIdentity)
	if value == "" {
		return a, nil, true
	}
	platform, encoded, ok := strings.Cut(value, " ")
	if !ok || platform == "" || len(platform) > limits.IdentityPlatform || !printable(platform) || len(value) > limits.Identity {
		return a, nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil || !json.Valid(raw) || !isObject(raw) {
		return a, nil, false
	}
	a.IdentityPlatform = platform
	return a, raw, true
}
