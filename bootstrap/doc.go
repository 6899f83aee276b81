// Package bootstrap makes the file Envoy starts with, from plain values, and the one
// consul-dataplane starts with.
//
// A bootstrap is equivalent to that of Consul 1.20's own bootstrap command for the same
// registration; the tests run that command and compare.
//
// Flow (Generate): 1. decode the keys of the proxy's configuration that concern a
// bootstrap, collecting every mistake; 2. work out addresses, sinks and access
// logs; 3. build one tree of JSON objects; 4. encode it.
//
// Owns: the shape of envoy-bootstrap.json and the meaning of the envoy_* keys; the
// shape of consul-dataplane.json (Dataplane).
// Never does: I/O, name resolution, reading the environment or the clock. No text
// templates: a value can never break out of its string.
// Start reading at: Generate.
package bootstrap
