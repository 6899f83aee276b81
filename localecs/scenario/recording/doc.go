// Package recording keeps what is seen of a run.
//
// Flow: 1. Begin, Note and Request take what happens; 2. Run is the history until
// then.
//
// Owns: how many buckets requests are counted in. Never does: judge, or ask anybody.
// Start reading at: Recording.
package recording
