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

// HeaderRequestIdentity carries the request identity, both ways.
const HeaderRequestIdentity = "X-Broker-API-Request-Identity"

// Headers of the API.
const (
	headerVersion         = "X-Broker-API-Version"
	headerIdentity        = "X-Broker-API-Originating-Identity"
	headerRequestIdentity = HeaderRequestIdentity
)

// The same as an http.Header keeps them: it must rewrite any other spelling
// each time that it is asked.
var (
	keptVersion         = http.CanonicalHeaderKey(headerVersion)
	keptIdentity        = http.CanonicalHeaderKey(headerIdentity)
	keptRequestIdentity = http.CanonicalHeaderKey(headerRequestIdentity)
)

// digits reads a short number of digits only: no sign, no spaces.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 6 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// RequestIdentity is what is echoed of a request with these headers, in every
// answer, errors included (RID-01), unless it could harm whoever reads it
// (RID-04). It is for whoever answers in the server's place, too.
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

// asker reads who asked, and the identity's object in clear, for audit. A value that
// cannot be read never blocks a request (OID-03).
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

// checkIdentity refuses an originating identity that is larger than a record may
// hold. A deletion must get through whatever an audit header holds (OID-03):
// there, it is left out.
func checkIdentity(r *http.Request) error {
	if r.Method != http.MethodDelete && len(r.Header.Get(keptIdentity)) > limits.Identity {
		return lifecycle.Refuse(lifecycle.BadRequest, "The header %s is larger than %d bytes.", headerIdentity, limits.Identity)
	}
	return nil
}
