// Package workload describes an ECS task in Consul: a service with its
// sidecar proxy, or a gateway. Task metadata and configuration go in, one
// plain value comes out.
//
// Flow: 1. ParseTask reads the metadata endpoint's answer and refuses what is
// no task; 2. New joins it with the configuration; 3. the Workload goes down
// the call chain unchanged.
//
// Owns: every name and ID in Consul (ids.go), the names of containers and
// files, whose container counts as the application's.
// Never does: I/O; decide when to register.
// Start reading at: New and ids.go.
package workload
