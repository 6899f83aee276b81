// Package docker runs containers in a Docker engine on this host, as the ECS
// agent does on EC2: the network is ours, the rest is the engine's.
//
// Flow: 1. Open asks whether the engine can serve, takes away what an earlier run
// on the same directory has left, and starts the watcher; 2. Namespace starts a
// pause container, in whose network namespace localecs/network puts a task's
// links; 3. Pull makes an image of the scenario's programs, or gets one; 4. Group
// starts containers in that namespace, and a container's first process is looked
// up on this host, so that signals and faults are those of runtime/processes;
// 5. Close removes everything, and so does the watcher when this process is
// killed.
//
// Owns: containers and volumes with its labels. Images stay, as a build's do, until
// the next of the same name.
// Never does: networks, addresses, health states, logs on disk.
// Start reading at: Open, then Group.Start.
package docker
