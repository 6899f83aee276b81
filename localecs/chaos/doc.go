// Package chaos makes random schedules of faults and ordinary life.
//
// Flow: 1. Generate draws a schedule for a world; 2. somebody runs it, and package
// invariant judges what was seen; 3. Shrink looks for a shorter schedule that
// still fails.
//
// Owns: which schedules there are, and that some instance is always left alone.
// Never does: break anything, read a clock, draw a seed.
// Start reading at: Schedule, then Generate.
package chaos
