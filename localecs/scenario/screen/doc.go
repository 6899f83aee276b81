// Package screen draws what a scenario is doing now as lines of text: pure, with
// the state, the size of the terminal and the time as its arguments.
//
// Flow: 1. the scenario describes itself as a State; 2. Render chooses the widest
// layout of the tasks that fits, and folds what does not; 3. rows are cut to the
// width, in cells, and coloured last.
//
// Owns: the words for states of containers, the layout.
// Never does: write anywhere, or move a cursor.
// Start reading at: State, then Render.
package screen
