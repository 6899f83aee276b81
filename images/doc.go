// Package images reads what container images execute from their registries.
//
// Flow: (1) Open reads the layouts and archives that replace registries; (2) Lock reads the
// manifest of each reference, once, several at the same time; (3) for each platform on which
// a task of the mesh can run it reads manifest and configuration, and never a layer; (4) the
// result is a taskdef.ImageLock, or a Failure for each image.
//
// Owns: the rules by which a reference finds its image, platforms, the texts of failures.
// Never does: writing the lock, reading definitions; admission needs no registry.
// Start reading at: Lock, then resolve.
package images
