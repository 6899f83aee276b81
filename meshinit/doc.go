// Package meshinit is the short-lived container that makes a task part of the
// mesh: identity, registration, Envoy bootstrap.
//
// Flow: 1. check the volume and the configuration, before anything is at
// stake; 2. read the task metadata; 3. log in and wait until the token is
// known everywhere; 4. register the service and its proxy, read the proxy back;
// 5. write program, bootstrap and token for the other containers, and last the
// status that they wait for (Gate). A failure or a signal at any point logs the
// token out, removes the files and the redirection, except for what an earlier run of the
// task made, and reports why in the status.
//
// Owns: the order of the steps, what is undone, the modes of the files, the status.
// Never does: read the environment, wait without a limit, continue after a refusal.
// Start reading at: Run and steps.
package meshinit
