// Package strict reads YAML files that people write: what it does not know is an
// error, with its place and what was probably meant.
//
// Flow: Unmarshal 1. walks the document beside the type, and collects unknown
// keys and bare numbers for durations; 2. decodes it; 3. puts the library's errors
// into words for who has written the file.
//
// Owns: the form of errors about YAML. Never does: know what the keys mean.
// Start reading at: Unmarshal.
package strict
