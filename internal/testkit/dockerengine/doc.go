// Package dockerengine gives tests a real Docker engine: the one that runs, or
// a new one in its own namespaces.
//
// Flow: 1. TestMain plays Roles, since the engine is this test binary until it
// becomes dockerd; 2. Start asks whether an engine answers and otherwise starts
// the one on PATH or in .tools/docker; 3. Try and Run call its client, Client's
// users take Host; 4. the end of the test removes what has its ID, ends the
// engine and looks for anything that is left.
//
// Networks: an engine of our own has a network namespace, so bridges of several
// test packages never meet, and containers reach each other and nothing else.
// It changes no rules of packets (--iptables=false); its DNS server for
// containers on networks of the user needs the program iptables, which sets two
// rules inside of the container's namespace. Unknown names take as long as the
// asker waits: the next DNS server is unreachable. There is no default bridge:
// name a network, or --network=none.
// Owns: control groups, mounts and processes named by Engine.ID.
// Never does: pull, or touch what it has not made in an engine that ran before.
// Start reading at: Start.
package dockerengine
