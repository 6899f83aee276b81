// Package standin says what of this machine stands in for an image that nobody
// can pull: the programs that -image names.
//
// Flow: 1. Set collects what flags give; 2. Image finds all of it on this machine.
//
// Owns: the syntax of -image, -entrypoint and -cmd, and where a program lies in the
// container. Never does: run one.
// Start reading at: Flags.
package standin
