// Package entrypoint decides when a signal reaches the wrapped program: Envoy
// outlives the applications that send through it, or a gateway's callers, and an
// application may get its TERM some time after this process does.
//
// Flow: 1. a loop collects events: signals, the child's end, a timer, changes of
// the task, the end of calls; 2. a pure policy maps (state, event) to (state,
// actions); 3. the loop carries the actions out: forward, signalGroup, drain, await,
// wake; 4. the child's exit code is the result.
//
// Owns: the order of TERM, drain and KILL at the end of a task.
// Never does: talk to Consul, start or reap processes (see supervise), or end
// Envoy because metadata cannot be read.
// Start reading at: Envoy.policy and App.policy, then idleCallers.elapsed.
package entrypoint
