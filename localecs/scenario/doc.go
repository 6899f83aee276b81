// Package scenario runs task definitions with a real Consul server, steps, traffic and faults, and
// judges the result; or task definitions alone, without a server.
//
// Flow: 1. Prepare, or PrepareDefinitions, reads the definitions and finds every program; 2. Run opens a
// cluster and starts the Consul server; 3. the steps start and stop tasks, send traffic and wait
// for conditions; 4. a Schedule begins and ends faults, and a watcher follows the checks in
// Consul; 5. every observation is an Event, which Lines or Objects show and a Recording
// keeps; 6. checks are judged; a Trial repeats all this under random faults.
//
// Owns: the steps, the verdict, the names and form of events, the meaning of
// "in traffic" and of "nothing left".
// Never: know how ECS orders containers, or retry a request.
// Start reading at: Run and steps.go; definitions.go for tasks without a scenario.
package scenario
