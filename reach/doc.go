// Package reach answers whether one service of the mesh can call another, and which link of the chain is broken if not.
//
// Flow (Examine): 1. the caller, its proxy and upstream; 2. the discovery chain, followed for one request; 3. for each
// target: registration, healthy instances, ports, protocol and the intention that decides; 4. the certificates' root.
//
// Owns: what a request through two proxies needs, and the words that say what is missing.
// Never does: I/O. The types of Facts are those parts of Consul's answers that decide, under Consul's names.
// Start reading at: Examine.
package reach
