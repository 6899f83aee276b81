// Package network is the VPC of a cluster: a network namespace per task, or addresses of the host's
// own loopback interface, with the VPC's name server and the impairments of faults.
//
// Flow: 1. New makes the VPC namespace and its gateway; 2. Attach makes a task's namespace: lo, the
// link-local eth0, eth1 with the task's address, routes; 3. Listen, DialContext and Do act inside a
// namespace from this process; 4. CutFrom, CutFromAll and Limit drop or delay a task's packets until they
// are ended; 5. Close of a task frees its address, Close of the fabric removes everything.
//
// Owns: addresses, links, ports, routing rules 1 to 30000 of the VPC, the DNS wire format.
// Never does: leave a trace in the host's namespaces or file system: namespaces live by open
// descriptors alone and end with the process.
// Start reading at: New, Attach and Namespace; vpc.go makes the VPC, host.go has what differs on the host.
package network
