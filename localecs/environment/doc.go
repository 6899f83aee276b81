// Package environment makes a container's environment variables as ECS does.
//
// Flow: 1. the image's own; 2. environment files, of which the first wins; 3.
// what the definition says; 4. its secrets, each resolved by the rules for its
// kind of valueFrom; 5. what the ECS agent sets, over anything a user wrote.
//
// Owns: precedence (spec/ecs-semantics.md section 4), the formats of
// environment files and of valueFrom (section 7).
// Never does: I/O: files and secrets come from local stores.
// Start reading at: List.
package environment
