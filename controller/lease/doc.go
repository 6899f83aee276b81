// Package lease makes one of several controllers the leader, through a Consul
// session that locks a KV key, and keeps whoever is not from writing.
//
// Flow: 1. Lead waits while another session holds the key; 2. it makes a
// session and locks the key; 3. it renews the session and watches the key while
// the caller works; 4. it unlocks the key and destroys the session.
//
// The lock alone is not enough: a process that was paused believes that it
// still leads. So each renewal gives a lease, counted from before the request
// was sent, and Guard holds every write back that has no lease: what was sent
// before is all that a deposed leader does. Consul invalidates a session no
// earlier than TTL after the last renewal (no later than two TTL), and gives the
// lock to nobody for LockDelay after that; the lease ends TTL after it.
//
// Owns: session and key of the lock, the clock of leases.
// Never does: hold reads back, or decide what to do about a lost lease.
// Start reading at: Lock.Lead, then Guard.
package lease
