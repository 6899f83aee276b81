// Package docker runs containers in a Docker engine on this host, behind the interface of
// package runtime.
//
// Flow: 1. Open checks the engine, removes what an earlier run on the same directory left, and
// starts a watcher process; 2. Namespace starts a pause container, in whose network namespace
// package network puts a task's links; 3. Pull makes an image of the scenario's programs, or
// gets one from the engine or its registry; 4. Group starts containers in that namespace, whose first
// process is looked up on this host, so signals and faults work as in package runtime; 5.
// Close removes everything, and so does the watcher when this process is killed.
//
// Owns: containers and volumes with its labels. Images stay until the next one of the same name.
// Never does: networks, addresses, health, log files.
// Start reading at: Open, then Group.Start.
package docker
