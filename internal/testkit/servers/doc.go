// Package servers gives tests Consul servers that fail as servers of a cloud do: their packets are
// dropped, they lose their peers, they pause, they are replaced by others at new addresses.
//
// Flow: 1. NewVPC makes a network without an outside; 2. Start starts real servers in it, and Fronts
// makes any number of addresses that one real server answers; 3. Host makes a machine for a task, whose
// processes Run starts; 4. Drop, CutFrom, Isolate, Pause, Kill, Leave and Join are the events.
//
// Owns: one network namespace a server and a machine. Namespaces live by descriptors, and the kernel kills
// their processes when the test process ends, even by kill -9, so nothing is left.
// Never does: use a port or an address of the host, so tests with servers may run at the same time.
// Start reading at: VPC.
package servers
