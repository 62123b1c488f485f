// Package offerings embeds the offerings that ship with the broker, a folder
// for each: offering.yaml, and beside it what its provider reads. What they
// mean, and whether they are right, is the catalog package's.
package offerings

import "embed"

// FS holds the folders of the shipped offerings at its root.
//
//go:embed */*
var FS embed.FS

// Schema is the JSON Schema of offering.yaml, for editors and for whoever loads
// one. A member's description says what to write.
//
//go:embed offering.schema.json
var Schema []byte
