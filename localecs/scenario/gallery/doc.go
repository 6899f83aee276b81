// Package gallery keeps the pictures of runs in their directories.
//
// Flow: 1. Save writes what was recorded of a run, as data and as a page; 2. Load
// reads it later; 3. Show draws it in the terminal, Page as a page.
//
// Owns: the names of the files. Never does: draw by itself.
// Start reading at: Save.
package gallery
