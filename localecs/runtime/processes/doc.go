// Package processes acts on the processes of a container: signals, and a brake
// that stops some or all of them without ending them.
//
// Flow: 1. New takes the container's first process; 2. what shares its mount
// namespace is the container's, also what a probe or an exec has brought in;
// 3. Freeze and Slow stop processes until they are let go; 4. End is for whoever
// has seen the first process end.
//
// Owns: nothing; it looks the processes up each time.
// Never does: start or reap a process, or know what made the container.
// Start reading at: Group.Each.
package processes
