// Package invariant says what a schedule of faults may cost, and judges what a run
// under it has shown.
//
// Flow: 1. Excuses says what the schedule's events may cost, by Rules; 2. Check
// holds an Observed against the invariants and names what they do not excuse.
//
// Owns: what each kind of fault may cost, with the reason, and the bounds.
// Never does: read a clock, or excuse a product for being slow.
// Start reading at: Rules, then Check.
package invariant
