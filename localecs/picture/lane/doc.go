// Package lane makes of a task's events what a picture shows: lanes with what lasted
// and what was a moment, and the moments of the architecture page's two diagrams.
//
// Flow: 1. Of makes a lane of each container, check and token, and one of the traffic;
// 2. Start and Stop are the two phases, with their moments and durations;
// 3. Life is a whole task in one lane.
//
// Owns: what a state is called. Never does: draw, or know where on a page it is.
// Start reading at: Of, then Start.
package lane
