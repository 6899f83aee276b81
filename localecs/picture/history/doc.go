// Package history is what was measured of a run, as data: everything that a picture
// is drawn from, and its JSON form in timeline.json and in a run's report.
//
// Flow: 1. whoever follows a run fills a Run; 2. a picture is drawn from it, at once
// or from the file later, which Check judges then.
//
// Owns: the names in the JSON. Never does: measure, or draw.
// Start reading at: Run.
package history
