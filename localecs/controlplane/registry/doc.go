// Package registry has the task definitions of the ECS API: families and their
// revisions.
//
// Flow: 1. RegisterTaskDefinition reads and checks a document with taskdef's
// rules and makes a revision; 2. Find finds it by any of its names; 3. Override
// makes the definition of one task of it.
//
// Owns: revision numbers and statuses, and what registration derives.
// Never does: change a definition that was handed out.
// Start reading at: Registry.
package registry
