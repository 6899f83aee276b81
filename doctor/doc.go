// Package doctor examines what a task needs to be in the mesh, and says what is broken.
//
// Flow: 1. a command makes the checks that its container or desk allows; 2. Examine asks them all at
// once, within Limit; 3. an error becomes a Finding with the ID and the remedy of internal/failure; 4.
// Bundle puts findings and redacted state into an archive.
//
// Owns: the checks, their order, and what they make of Envoy's admin interface.
// Never does: write anything, log in, or show a secret.
// Start reading at: Check, then Examine.
package doctor
