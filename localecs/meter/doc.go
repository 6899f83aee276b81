// Package meter makes the figures of a container that task metadata shows under
// /stats (spec/ecs-semantics.md section 3.5).
//
// Flow: 1. Begin takes a first sample when a container's program runs; 2. Stats
// takes another when somebody asks, and compares the two once they are a second
// apart; 3. within the next second the same answer is given again.
//
// Owns: the samples. Never does: measure when nobody asks.
// Start reading at: Task.Stats.
package meter
