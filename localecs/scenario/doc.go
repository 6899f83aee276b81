// Package scenario runs a scenario file: task definitions in a local ECS with a
// real Consul server, steps, and checks of what must be true at the end.
//
// Flow: 1. file.Load reads the file and reports every mistake in it; 2. Run
// opens a cluster and starts the Consul server; 3. the steps start and stop
// tasks, send traffic, wait for conditions; 4. faults begin and end at their
// times, and a watcher notes what Consul knows and when; 5. the checks are judged and the timeline of each task is drawn.
//
// Owns: the steps and the verdict; below it file, server, traffic, timeline.
// Never does: know how ECS orders containers, or retry a request.
// Start reading at: Run, then steps.go.
package scenario
