package app

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider/wired"
)

// OperationTimeout is the deadline of operations, unless their plan has another.
const OperationTimeout = 24 * time.Hour

// Waits are how long a request waits for the work of a provider, if that differs from
// wired.DefaultWait. They are defined here because the API knows providers only by name.
var Waits = map[string]time.Duration{
	ProviderCloudFormation: wired.MaxWait, // AWS needs seconds before a new key works
}

// Now returns the machine's time in UTC.
func Now() time.Time { return time.Now().UTC() }

// NewID returns 127 random bits in lifecycle.OperationIDLength characters. The first character
// is a letter, since commands take an argument that begins with a hyphen for a flag.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	b[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// NewSecret returns 32 random bytes.
func NewSecret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}

// NewUUID returns a random UUID (RFC 9562, version 4).
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
