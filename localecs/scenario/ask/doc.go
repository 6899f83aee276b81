// Package ask puts single questions to a task of a scenario and looks at the
// answers.
//
// Flow: 1. Identity asks a public listener from outside of the mesh who it is;
// 2. Send asks a URL from inside a task, as its application would; 3. Look says
// what is wrong with a text.
//
// Owns: what counts as a good answer.
// Never does: ask twice.
// Start reading at: Identity and Send.
package ask
