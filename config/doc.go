// Package config turns a CONSUL_ECS_CONFIG_JSON document into one validated
// value with every default applied.
//
// Flow: 1. syntax.go reports what is not JSON by line and column; 2. parse.go picks
// the generation, and decode.go stores the text in the types of types.go, whose
// check tags (rule.go) state what each field takes; 3. inert.go warns about settings
// without effect; 4. parse.go applies the defaults.
//
// schema.json describes the same document to editors. No JSON Schema library is
// linked, which cost 0.7 MB of binary, 2 MB of memory and 6 ms at every start of
// every command; tests compare the verdicts with one.
//
// Owns: the schema, the defaults, the wording of violations and warnings.
// Never does: read files, the environment or the network.
// Start reading at: Parse.
package config
