// Package view draws a run as a page. It is a pure function of what was recorded.
//
// Flow: 1. a finished run is a RecordedRun, of which LanesOf makes lanes: a segment for what lasts, a mark for
// a moment; 2. WriteHTML draws all lanes in one diagram, with tables of the moments of each task and of every event
// below.
//
// Owns: the kinds of events that are drawn, the form of timeline.json, the page's layout.
// Never does: measure, or omit anything that was recorded.
// Start reading at: RecordedRun, then LanesOf and WriteHTML.
package view
