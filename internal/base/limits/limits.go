// Package limits holds every bound on what the broker accepts, keeps and passes on, so that the
// bounds can be added up: a test of package ledger builds the largest record that they allow,
// and proves that a store takes it. The users of a bound decide what happens beyond it.
package limits

import (
	"strings"
	"unicode/utf8"
)

// Bounds of a request, in bytes.
const (
	// Body is the largest body of a request; a larger one is 413 (INP-14).
	Body = 256 << 10
	// Depth is how deeply a body may be nested: the stored part must be readable again inside a record (INP-15).
	Depth = 1000
	// Identifier is the greatest length of an id of an instance or a binding, and of any other
	// text of a request that is kept: the sort key of a binding must hold it (INP-13). A longer
	// text is answered 400, as is anything beyond the bounds that follow.
	Identifier = 800
	// Parameters is the most JSON that a user's parameters may have, even after an update has merged them.
	Parameters = 64 << 10
	// Context is the most JSON that a platform's context may have.
	Context = 32 << 10
	// StableContext is the most JSON of a context that a record holds in clear, for comparison.
	StableContext = 2 << 10
	// Names is the most JSON of the names in a context that a record keeps, to show them.
	Names = 1 << 10
	// Identity is the greatest length of the header that says who asks (OID-02), and
	// IdentityPlatform that of a platform's name in it.
	Identity         = 12 << 10
	IdentityPlatform = 255
	// RequestIdentity is the greatest length of a request identity that a response repeats; a
	// longer one is left out (RID-04).
	RequestIdentity = 256
	// Token is the greatest length of an operation token that a poll may name (PROV-25, LOP-17).
	Token = 10_000
)

// Bounds of an offering. A catalog beyond them is refused.
const (
	// CatalogText is the greatest length of an id, name or version, in characters (CAT-26). Ids and versions are ASCII.
	CatalogText = 255
	// Settings is the most bytes of JSON that the settings of a plan may have.
	Settings = 16 << 10
	// DashboardURL is the greatest length of the address of an instance's dashboard, in bytes,
	// with the longest id in it.
	DashboardURL = 3 << 10
)

// Bounds of a provider's answer, in bytes.
const (
	// Grant is the most JSON that a binding may give, including volume mounts and everything
	// else. A bind with a larger grant fails.
	Grant = 64 << 10
	// State is how many bytes a provider may keep of an instance or of a binding, and Snapshot how many
	// bytes of JSON it may record of a plan. An operation whose state is larger fails; a catalog with a
	// larger snapshot is refused.
	State    = 16 << 10
	Snapshot = 16 << 10
	// Description is the greatest length of the text that is shown about an operation. A longer text is clipped.
	Description = 2 << 10

	// Before is how much of a description is kept while the text of a trouble replaces it.
	Before = 200

	// ParameterNames is how many bytes of JSON an operation keeps of the names of its
	// request's parameters.
	ParameterNames = 256

	// Trouble is the greatest length of the text that tells operators about a trouble.
	Trouble = 512
)

// Bounds of a record.
const (
	// Leases is how many leases a record keeps; earlier ones are merged.
	Leases = 8
	// SealedOverhead is how many bytes a vault may add to a value that it seals.
	SealedOverhead = 512
	// Record is the largest body of a record in bytes. An item of DynamoDB has at most 400 KiB,
	// and its keys need some of that. A later program must be able to finish every record, so
	// this bound never falls, and stays well above the sum of the other limits.
	Record = 405_000
)

// Bounds of the tags of a cloud's things: the smallest bounds among AWS's services.
const (
	// Tags is how many tags a thing may have.
	Tags = 50
	// TagValue is the greatest length of a tag's value, in characters.
	TagValue = 256
)

// ellipsis ends a clipped text.
const ellipsis = "…"

// Clip returns text as valid UTF-8 of at most so many bytes, three or more: it cuts a longer
// text between two characters, and marks the cut.
func Clip(text string, most int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
