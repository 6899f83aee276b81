// Package view draws a run as a page. It is a pure function of what was recorded.
//
// Flow: 1. a finished run is a RecordedRun, of which LanesOf makes lanes: a segment for what lasts, a mark for
// a moment; 2. WriteHTML draws the run, then the start and the stop of each task, with tables of the same data
// below.
//
// Owns: the kinds of events that are drawn, the form of timeline.json, the page's layout.
// Never does: measure, or omit anything that was recorded.
// Start reading at: RecordedRun, then LanesOf and WriteHTML.
package view
