// Package limits holds every bound on what the broker takes, keeps and passes on, so that they can be
// added up: a test of package ledger makes the largest record that they allow, and proves that a store
// takes it. The users of a bound decide what happens beyond it.
package limits

import (
	"strings"
	"unicode/utf8"
)

// Bounds of a request, in bytes.
const (
	// Body is the largest body of a request; a larger one is 413 (INP-14).
	Body = 256 << 10
	// Depth is how deeply a body may be nested: what is stored of it must be
	// read again inside a record (INP-15).
	Depth = 1000
	// Identifier is the longest id of an instance or a binding, and any other text of a request that is
	// kept: the sort key of a binding must hold it (INP-13). A longer one is 400, as for all that follow.
	Identifier = 800
	// Parameters is how much JSON a user's parameters may be, also after an update has merged them.
	Parameters = 64 << 10
	// Context is the same for a platform's context.
	Context = 32 << 10
	// StableContext is how much of it a record holds readable, to be compared.
	StableContext = 2 << 10
	// Names is how much JSON a record keeps of the names in a context, to show them.
	Names = 1 << 10
	// Identity is the longest header that says who asks (OID-02), and
	// IdentityPlatform the longest name of a platform in it.
	Identity         = 12 << 10
	IdentityPlatform = 255
	// RequestIdentity is the longest one that a response repeats; a longer one is left out (RID-04).
	RequestIdentity = 256
	// Token is the longest operation token that a poll may name (PROV-25,
	// LOP-17).
	Token = 10_000
)

// Bounds of an offering. A catalog beyond them is refused.
const (
	// CatalogText is the longest id, name and version, in characters (CAT-26).
	// Ids and versions are of ASCII.
	CatalogText = 255
	// Settings is how many bytes of JSON the settings of a plan may be.
	Settings = 16 << 10
	// DashboardURL is how long an instance's dashboard may be, in bytes, with the longest id in it.
	DashboardURL = 3 << 10
)

// Bounds of a provider's answer, in bytes.
const (
	// Grant is how much JSON a binding may give, volume mounts and all else
	// included. A bind whose grant is larger fails.
	Grant = 64 << 10
	// State is how many bytes a provider may keep of an instance or of a binding, and Snapshot how many
	// bytes of JSON it may record of a plan. An operation whose state is larger fails; a catalog with a
	// larger snapshot is refused.
	State    = 16 << 10
	Snapshot = 16 << 10
	// Description is the longest text that is shown of an operation. A longer
	// one is clipped.
	Description = 2 << 10

	// Before is how much of a description is kept while a trouble's text stands in its place.
	Before = 200

	// ParameterNames is how many bytes of JSON an operation keeps of the names of its
	// request's parameters.
	ParameterNames = 256

	// Trouble is the longest text, for operators, of a trouble that an operation waits for.
	Trouble = 512
)

// Bounds of a record.
const (
	// Leases is how many leases a record keeps; earlier ones are merged.
	Leases = 8
	// SealedOverhead is how many bytes a vault may add to what it seals.
	SealedOverhead = 512
	// Record is the largest body of a record in bytes. An item of DynamoDB ends at 400 KiB, and its keys
	// need some of it. A later program must be able to finish every record: this bound never falls, and
	// stays well above the sum of the other limits.
	Record = 405_000
)

// Bounds of the tags of a cloud's things: the smallest among AWS's services.
const (
	// Tags is how many tags a thing may have.
	Tags = 50
	// TagValue is the longest value of one, in characters.
	TagValue = 256
)

// ellipsis ends a clipped text.
const ellipsis = "…"

// Clip gives text as valid UTF-8 of at most so many bytes, three or more: it cuts a longer text between two
// characters, and marks the cut.
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
