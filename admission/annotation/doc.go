// Package annotation knows the annotations of task definitions: docker labels and tags
// that begin with Prefix.
//
// Flow: 1. Recognize separates names from mistakes; 2. Words, Upstreams and Paths read lists;
// 3. Check finds values that Consul or the token broker would refuse when a task starts.
//
// Owns: the names, the syntax of the values. Never does: read a definition, or decide
// which of several annotations counts.
// Start reading at: the names, then Check.
package annotation
