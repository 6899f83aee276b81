// Package rootless runs this program again where a user who is not root may
// make networks and containers: in user, mount and network namespaces of its
// own.
//
// Flow: 1. Needed asks what this process may do; 2. Run decides which IDs the
// user namespace has (choose, pure), clones this program into it, passes
// signals on and returns its exit code; 3. Main, the first line of main, is
// where that child begins: it waits for its IDs and ties its life to its
// parent's; 4. Check says why such a child may do less than it must.
//
// Owns: the user namespace and its mapping of IDs.
// Never does: know what the program does inside, or become root of the host.
// Start reading at: Run, then Main.
package rootless
