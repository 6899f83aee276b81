// Package picture shows a run: as a page that needs nothing but a browser, and in a
// terminal.
//
// Flow: 1. lane makes lanes of what was measured; 2. axis gives moments their places;
// 3. HTML draws the run, then the start and the stop of each task, with sheet, and
// puts tables with the same data below; Text does it with characters.
//
// Owns: what a page has, its colours and patterns.
// Never does: measure, or leave out anything that was.
// Start reading at: HTML, then diagram.go.
package picture
