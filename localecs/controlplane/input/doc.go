// Package input checks what calls of the ECS API have in common: lengths,
// enumerations, tags, pages of lists.
//
// Owns: AWS's words about such mistakes, and what a nextToken holds.
// Never does: know a call, or read a clock.
// Start reading at: Page.
package input
