// Command image builds the container image and the files of a release, without
// a Docker engine.
//
// Flow: 1. read the program, and ask go which modules it links; 2. take the
// texts of their licences, Mozilla's root certificates, the names of the users
// and /consul into the root file system; 3. write the image as an archive, and
// the bill of materials (SBOM); 4. for a release, do so for each architecture,
// and write the index of the images, the provenance and the checksums.
//
// Owns: what is in the image and its configuration. Owners, modes and times are
// fixed: the same commit gives the same bytes. The Dockerfile has the same
// configuration, which a test compares.
// Never does: read anything of the machine's but Go, its modules and the programs.
// Start reading at: options.single.
package main
