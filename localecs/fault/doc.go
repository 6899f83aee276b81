// Package fault says what goes wrong in a run, on whom, and when: the faults of
// a scenario file and of a chaos run.
//
// Flow: 1. a scenario file or a random generator makes a list of faults; 2.
// Problems tells what cannot be; 3. whoever runs it begins each at its time, and
// ends those that last.
//
// Owns: the vocabulary of faults and its rules.
// Never does: break anything, read a clock.
// Start reading at: Fault.
package fault
