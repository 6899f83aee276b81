// Package ecs holds the shapes of the ECS API as far as localecs serves them:
// what calls take, what they answer, and the errors they answer with. Names of
// members are AWS's.
//
// Owns: JSON names, and how a moment is written (epoch seconds).
// Never does: decide what an answer says.
// Start reading at: Task, then calls.go.
package ecs
