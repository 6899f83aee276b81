// Package shapes holds the data of the ECS API as far as localecs serves it: what calls take,
// what they answer, the errors, and the names that ECS builds.
//
// Flow: 1. a call's body is decoded into an input of this package; 2. the control plane answers
// with a Task, a Service or a task definition; 3. ARNs, interface names and addresses in
// them come from Account and the functions beside it.
//
// Owns: JSON member names, ARNs, how a time is written (epoch seconds).
// Never does: decide what an answer contains.
// Start reading at: Task, then calls.go and arn.go.
package shapes
