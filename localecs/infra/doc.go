// Package infra runs processes in the VPC that are no task's, such as a Consul
// server.
//
// Flow: 1. Host.Start takes the service's address and ports, and starts its
// container in the VPC's own network; 2. Down kills it and starts it again with
// what it had; 3. Stop ends it.
//
// Owns: the service's process, directories and log.
// Never does: give an address back: the VPC ends with the cluster.
// Start reading at: Host.Start.
package infra
