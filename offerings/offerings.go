// Package offerings embeds the offering files that ship with the broker, one
// YAML file for each offering. What they mean, and whether they are right, is
// the catalog package's.
package offerings

import "embed"

// FS holds the shipped offering files at its root.
//
//go:embed *.yaml
var FS embed.FS
