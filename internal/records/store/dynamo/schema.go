package dynamo

// These constants describe the table as it must be made: its keys are AttributePartition and
// AttributeSort, its time to live is AttributeExpires, and it has one index, IndexDue, with the
// keys AttributeShard and AttributeDue, which holds nothing but keys.
const (
	AttributePartition = "pk" // text
	AttributeSort      = "sk" // text
	AttributeVersion   = "version"
	AttributeWriter    = "writer"
	AttributeFormat    = "format" // the encoding of the body
	AttributeBody      = "body"
	// AttributeDue is a number of milliseconds since 1970.
	AttributeDue = "due"
	// AttributeShard is a number from 0 to Shards-1. Records without it are not in the index: those that
	// are never due, and those that are due only to be dropped, which the table does by itself.
	AttributeShard = "shard"
	// AttributeExpires is a number of seconds since 1970, after which the table
	// drops the record.
	AttributeExpires = "expires"

	// IndexDue is sparse: it holds the keys of the records that have a shard, ordered by shard and due time.
	IndexDue = "due"

	// Shards is the number of index partitions over which due records are spread. Each partition
	// takes 1000 writes a second, and a listing costs one query for each. It may be raised, which
	// leaves written records where they are; lowering it would hide records from the listing.
	Shards = 8
)
