// Command size shows what consul-ecs costs a task at rest: its size, what each
// large import adds to it, and the memory of the in-task commands. MB are 10^6
// bytes.
//
// Flow: 1. build consul-ecs as it is released; 2. build a small program with
// and without each import, from sources that exist only in the compiler's
// overlay; 3. run the commands against a real Consul and read /proc; 4. print.
//
// Owns: the list of imports that are worth watching.
// Never does: pass or fail by a figure, use anything but loopback, run longer
// than a minute once the packages are compiled.
// Start reading at: run.
package main
