// Package archive makes a container image of programs of this host: an archive as
// `docker load` takes it, FROM scratch and without a builder.
//
// Flow: 1. New splits the files into layers, one per large file so that images
// share them; 2. it sums each layer up, which makes the image's ID; 3. Write
// writes the archive in one go, reading the files again.
//
// Owns: nothing on disk.
// Never does: talk to an engine, or look for libraries: that is runtime/image's.
// Start reading at: New.
package archive
