// Package progress tells people and machines what happens in a scenario while
// it happens.
//
// Flow: 1. the scenario makes an Event of everything there is to see; 2. Lines
// writes it as a line for people, Objects as a JSON object.
//
// Owns: the names and the form of the events, which programs read.
// Never does: know what an event means for the scenario.
// Start reading at: Event, then Stream.
package progress
