// Package config turns a CONSUL_ECS_CONFIG_JSON document into one validated
// value with every default applied.
//
// Flow: 1. syntax.go reads the text, with line and column for what is no JSON;
// 2. validate.go holds it against schema.json and says what is allowed; 3.
// prune.go takes out what old versions ignored; 4. decode into Config, check
// what a schema cannot say, apply defaults; 5. inert.go warns about settings
// without effect.
//
// The validator is our own: a JSON Schema library cost 0.7 MB of binary, 2 MB
// of memory and 6 ms at every start of every command; tests hold ours to it.
//
// Owns: the schema, the defaults, the wording of violations and warnings.
// Never does: read files, the environment or the network; act on Generation.
// Start reading at: Parse.
package config
