// Package answer puts what is known of a subject's rights into words: a line, an
// explanation, the merged rules, or JSON for machines.
//
// Flow: 1. New takes what the resolver found and makes a table of it; 2. Can
// answers a query in a line, Explain with every rule that was looked at; 3.
// Compare adds what the server says, and a disagreement is a result of its own;
// 4. Sentence and Explain render.
//
// Owns: wording and JSON shapes. Never does: I/O, or decide by itself.
// Start reading at: Report.
package answer
