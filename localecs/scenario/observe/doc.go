// Package observe records what a run shows, for package chaos to judge.
//
// Flow: 1. the run's events pass through Event; 2. Watch follows Consul's checks
// and what is left of stopped tasks, and how late this machine is; 3. Settle waits
// until nothing more is to be seen; 4. Observed is the record.
//
// Owns: the times. Never does: judge, or change what the run does.
// Start reading at: Recorder.
package observe
