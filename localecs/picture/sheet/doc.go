// Package sheet draws SVG: shapes, and texts of which no two overlap.
//
// Flow: 1. New makes a sheet; 2. shapes are drawn in the order of the calls, each with
// a title that a pointer shows; 3. Text is drawn where it has room and is told
// otherwise; 4. SVG is the whole.
//
// Owns: how wide a text is at most, and that everything in it is escaped.
// Never does: choose colours: it says classes.
// Start reading at: Sheet.
package sheet
