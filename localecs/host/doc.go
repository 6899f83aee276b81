// Package host is what this machine allows: capabilities, user and group IDs, and a user
// namespace for a user who is not root.
//
// Flow: 1. CheckCaps and Explain name what the host lacks and the way around it, as a *MissingError;
// 2. where a user is not root, Run clones this program into user, mount and network namespaces,
// passes signals on and returns its exit code; 3. Dispatch, called first in main, is where
// that child begins, as does every other process in which this program runs itself; 4. IDs.Fit maps the accounts that a definition names to those that exist.
//
// Owns: the user namespace and its ID mapping; threads that are not returned to the scheduler.
// Never does: change the host, or know what runs inside.
// Start reading at: CheckCaps, then Run.
package host
