// Package impair makes the network of a task bad: packets that do not come
// through, and links that are slow.
//
// Flow: 1. New looks after the namespace that routes, Attach after one task's
// link to it; 2. CutFrom, CutFromServices and CutFromAll add routing rules that
// drop packets without a word, Limit shapes both directions; 3. each returns its
// end, and Close of a task ends what lasts.
//
// What a packet meets here is silence: no reset, no ICMP. A host that answers
// "unreachable" would end connections that a real partition lets hang. Task
// metadata and credentials come through, as they do not come from the VPC on ECS.
//
// Owns: the routing rules of the VPC from 1 to 30000 and its tables 101 and 102;
// the queueing discipline at both ends of a task's link.
// Never does: touch the host's own namespace.
// Start reading at: Task.
package impair
