// Package definitions is the task definitions of a scenario, each task's with the
// commands that the scenario gives it.
//
// Flow: 1. read each file once; 2. hold it against the scenario: its role must be
// known; 3. make a copy for a task with commands of its own; 4. hold the steps
// against the definitions: the containers they name must be there.
//
// Owns: what a task of a scenario is made of. Never does: start anything.
// Start reading at: Read.
package definitions
