// Package network is the VPC of a local ECS: one anonymous network namespace
// that routes, and one anonymous namespace per task linked to it, as awsvpc
// gives every task its own network interface. For hosts that cannot give
// namespaces, mode Host does the same with loopback addresses and ports that
// are claimed.
//
// Flow: 1. New makes the VPC namespace and its gateway; 2. Attach
// makes a task namespace: lo, the link-local leg eth0, the interface eth1 with
// the task's address, routes; 3. Listen, DialContext and Do act inside a
// namespace from this process, File lets a container join it; 4. Close of a
// task frees its address at once; Close of the fabric takes all away.
//
// Owns: addresses, namespaces, links, the threads that visit a namespace.
// Never does: leave a trace in the host's own namespace or file system.
// Namespaces live by open descriptors alone, so that they end with the process
// however it ends.
// Start reading at: New, Attach and Namespace; then wires and place, which vpc.go
// and host.go implement.
package network
