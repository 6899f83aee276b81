// Package images gets images into a Docker engine.
//
// Flow: 1. Pull makes an image of programs of this host when its name is defined,
// unless the engine has it, and otherwise takes the engine's, pulled if need be;
// 2. what is returned has the image's defaults; 3. earlier images made under the same
// name go.
//
// Owns: images labelled localecs.image.
// Never does: remove an image that a container uses, or one of somebody else.
// Start reading at: Store.Pull.
package images
