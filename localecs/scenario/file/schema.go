package file

import _ "embed"

//go:embed schema.json
var document string

// JSON is the schema, draft 2020-12.
func JSON() string { return document }
