// Package cgroup limits and measures the memory of containers by the kernel's
// control groups, of version 1 or 2, whichever has the memory controller.
//
// Flow: 1. Open finds the place below which this process may make groups, and
// removes what a killed simulator left there; 2. Root.Task and Group.Container
// make groups with limits; 3. Add puts a container's first process in, before
// it has children; 4. OutOfMemory and Usage tell what happened; 5. Close takes
// the group away.
//
// Owns: the directories named localecs-*. An owner holds a lock on its own for
// life, so a directory that can be locked belongs to nobody.
// Never does: touch a group that it has not made, or switch controllers on for
// others.
// Start reading at: Open.
package cgroup
