// Package progress tells people and machines what happens in a scenario while
// it happens.
//
// Flow: 1. the scenario makes an Event of everything there is to see; 2. Lines
// writes it as a line for people, Objects as a JSON object, and both break long
// silences; 3. Live draws package screen's block below the lines and takes it
// away at the end.
//
// Owns: the names and the form of the events, which programs read; the terminal.
// Never does: know what an event means for the scenario.
// Start reading at: Event, then Stream; painter for the terminal.
package progress
