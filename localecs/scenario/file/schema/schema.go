// Package schema is the JSON Schema of scenario files, with which editors check
// them and complete keys.
//
// Flow: a test of this package makes schema.json of the types that a scenario file
// is read into, and of their comments; -update writes it.
//
// Owns: schema.json. Never does: check a scenario: file.Load says more.
// Start reading at: JSON.
package schema

import _ "embed"

//go:embed schema.json
var document string

// JSON is the schema, draft 2020-12.
func JSON() string { return document }
