// Package plain runs task definitions that have no scenario, as ECS would: side by
// side, until they end or somebody stops them.
//
// Flow: 1. Prepare reads the definitions and finds what stands in for their images,
// secrets and files; all that is missing is in one error, with the flag for each;
// 2. Plan.Run starts a task of each; 3. what containers write and what becomes of
// them goes to Progress; 4. Outcome says how each has ended.
//
// Owns: what a task needs beyond its definition, and what a good end is.
// Never does: start a Consul server, or know how ECS stops a task.
// Start reading at: Prepare.
package plain
