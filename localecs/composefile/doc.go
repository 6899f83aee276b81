// Package composefile makes a docker compose file of task definitions.
//
// Flow: (1) names of services, images and secrets are chosen and checked; (2) a
// task becomes a service of its name, which holds its network and does nothing,
// and a service <task>-<container> for each container in that network; (3) the
// service endpoints is what ECS has at 169.254.170.2; (4) what a definition asks
// for and compose cannot do is a warning, and a comment in the file.
//
// Owns: names of services, labels, addresses and variables in the file.
// Never does: read files, know what docker compose does with the file.
// Start reading at: New.
package composefile
