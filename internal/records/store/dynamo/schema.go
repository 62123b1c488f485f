package dynamo

// The table as it has to be made: its keys are AttributePartition and
// AttributeSort, its time to live is AttributeExpires, and it has the one
// index IndexDue with the keys AttributeShard and AttributeDue, which holds
// nothing but keys.
const (
	AttributePartition = "pk" // text
	AttributeSort      = "sk" // text
	AttributeVersion   = "version"
	AttributeWriter    = "writer"
	AttributeFormat    = "format" // of the body
	AttributeBody      = "body"
	// AttributeDue is a number of milliseconds since 1970.
	AttributeDue = "due"
	// AttributeShard is a number from 0 to Shards-1. Records without one are
	// not in the index: those that are never due, and those that are due only
	// to be dropped, which the table does by itself.
	AttributeShard = "shard"
	// AttributeExpires is a number of seconds since 1970, after which the table
	// drops the record.
	AttributeExpires = "expires"

	// IndexDue is sparse: it holds the keys of the records that have a shard,
	// by that and by their due time.
	IndexDue = "due"

	// Shards spreads what is due over as many partitions of the index: each
	// of them takes 1000 writes a second, and a listing costs a query of each.
	// It may be raised, which leaves what is written where it is; lowering it
	// would hide records from the listing.
	Shards = 8
)
