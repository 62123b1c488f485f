// Package offerings embeds the offerings that ship with the broker: the folders, one for
// each with offering.yaml and what its provider reads beside it, and what they compile to.
// It leaves to package catalog what they mean, and whether they are right.
package offerings

import "embed"

// FS holds the folders of the shipped offerings at its root.
//
//go:embed */*
var FS embed.FS

// Catalog is what the folders compile to: a program that starts reads no YAML. A test of
// internal/app/offeringfiles keeps it current, and writes it with -update.
//
//go:embed catalog.dat
var Catalog []byte

// Schema is the JSON Schema of offering.yaml, for editors and for the compiler. A member's
// description says what to write.
//
//go:embed offering.schema.json
var Schema []byte
