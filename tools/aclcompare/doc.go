// Package aclcompare holds our ACL rules against those of Consul's server, side
// by side: the same answers, and at least as fast. It is its own module:
// the server's package is for tests only, and no part of the product.
//
// Flow: compare_test.go compares answers, bench_test.go times; `make test` runs
// the one, `make bench` the other.
// Never does: share what was parsed between two runs. The server's package owns
// what it is given.
package aclcompare
