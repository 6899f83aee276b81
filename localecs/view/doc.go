// Package view draws a run: the block at the end of a terminal while it lasts, and afterwards a page. Both
// are pure functions of what was recorded.
//
// Flow: 1. a running scenario describes itself as a State; 2. Render chooses the widest layout that fits the
// terminal and cuts rows to its width; 3. a finished one is a RecordedRun, of which LanesOf makes lanes: a
// segment for what lasts, a mark for a moment; 4. WriteHTML draws the run, then the start and the stop of
// each task, with tables of the same data below.
//
// Owns: the words for states, the kinds of events that are drawn, the form of timeline.json, the page's layout.
// Never does: write to a terminal, measure, or omit anything that was recorded.
// Start reading at: State and Render; RecordedRun, then LanesOf and WriteHTML.
package view
