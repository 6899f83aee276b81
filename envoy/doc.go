// Package envoy reads what the task's Envoy was started with, and asks it at its admin address.
//
// Owns: what is read of a bootstrap and of admin answers.
// Never does: run Envoy, or decide what follows from an answer.
// Start reading at: ReadBootstrap, then Ask.
package envoy
