// Package traffic logs what fails in the traffic of a task: Envoy counts it and logs nothing.
//
// Flow: 1. Watch reads those of Envoy's counters that only faults change; 2. classify says which fault, of which
// upstream, a counter belongs to; 3. monitor compares two reads and decides which lines are due; 4. they are logged.
//
// Owns: which counters are faults, and when one begins and ends.
// Never does: change anything, delay the end of a task, or take an Envoy that does not answer for a fault.
// Start reading at: classify, then monitor.observe.
package traffic
