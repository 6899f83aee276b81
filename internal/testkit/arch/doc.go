// Package arch checks the architecture of a Go module from its source text:
// who imports whom, what pure packages may touch, and the shape and density of the code.
//
// Flow: 1. Load parses every file of the module; 2. Layout.Check compares the
// imports with the table of arrows, applies the source rules and measures
// sizes and density; 3. exemptions and allowances are subtracted, and an exemption of nothing is a
// violation itself.
//
// Owns: the rules' mechanics. The table and the exemptions are the caller's;
// ours are in arch_test.go in the root.
// Never does: resolve types or run a compiler. A rule sees names.
// Start reading at: Layout, then Check.
package arch
