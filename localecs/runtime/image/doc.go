// Package image describes what a container would find in its image, and finds
// it on this host: programs with the shared libraries they need, files, empty
// directories, users and defaults.
//
// Flow: 1. the user's configuration becomes an Image; 2. Resolver.Binds turns
// programs and files into read-only bind mounts, following ELF dependencies;
// 3. Argv, Account and Signal apply the image's defaults to a container's
// definition.
//
// Owns: the rules of entry points, users, stop signals and shared libraries.
// Never does: mount anything, or show a container a program that its image
// does not list.
// Start reading at: Image and Resolver.Binds.
package image
