package dynamo

// ShardOf is where the index has a record.
var ShardOf = shardOf
