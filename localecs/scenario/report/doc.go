// Package report is what came of a scenario, and of several.
//
// Flow: 1. a Report is filled by the scenario; 2. Write prints it as text or as
// one JSON object; 3. WriteSummary prints one line for each scenario when there
// were several, and Code is the exit code of all of them.
//
// Owns: the form of the last screen.
// Never does: judge anything but by what the Report says.
// Start reading at: Report and Outcome.
package report
