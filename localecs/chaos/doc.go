// Package chaos has the faults of a run, random schedules of them, and the rules that judge what a
// run under faults may lose. It is pure.
//
// Flow: 1. a scenario file or Generate makes a list of Fault; 2. Problems reports what cannot be; 3.
// another package runs it and records an Observed; 4. Allowances computes what the schedule's events
// may cost, and Check reports violations; 5. Shrink looks for a shorter schedule that still
// fails.
//
// Owns: the vocabulary of faults, and what each kind may cost, with the reason.
// Never does: break anything, read a clock, draw a seed.
// Start reading at: Fault, then Generate and Rules.
package chaos
