// Package sarif writes the findings of an admission as a log of the Static Analysis
// Results Interchange Format, of which CI systems make annotations.
//
// Flow: Of takes a result, gives each finding the line of its path in the file that was
// read, and each code a rule with its text.
//
// Owns: the members of the format that are used. Never does: I/O.
// Start reading at: Of.
package sarif
