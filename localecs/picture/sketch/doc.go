// Package sketch shows a run with characters: a lane in a line.
//
// Flow: 1. lane makes the lanes and axis gives moments their places, as for the page;
// 2. a grid takes them cell by cell; 3. its rows are written, in colour or not.
//
// Owns: which character means what. Never does: ask what it writes to.
// Start reading at: Write.
package sketch
