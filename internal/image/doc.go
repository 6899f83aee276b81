// Command image makes the root file system of the container image, as a tar
// file that the Dockerfile adds: FROM scratch has no program that could make a
// directory or give it away.
//
// Flow: 1. take Mozilla's root certificates from the Go project's copy, whose
// version go.mod pins; 2. write them, the program, the names of its user and
// /consul with fixed owners, modes and times: the same commit gives the same
// layer.
//
// Owns: what is in the image, see entries. The tests build it as `make image`
// does, with a Docker engine of their own if none runs, and lay volumes out as
// ECS does.
// Never does: read anything of the machine's but the program.
// Start reading at: entries.
package main
