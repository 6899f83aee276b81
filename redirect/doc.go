// Package redirect brings the connections of a task's containers to its proxy.
//
// Flow of a transparent proxy: 1. NewSettings computes the settings from the
// configuration and the merged proxy; 2. Tables computes the chains and rules from
// the settings; 3. Apply replaces the task's rules by them in one transaction of the
// kernel's; 4. UseConsulDNS points resolv.conf at the proxy's DNS server. A later run that has to
// reach Consul suspends the rules, and resumes them if it fails.
// Flow of named upstreams, which need no right to change the network: 1.
// NameUpstreams gives each upstream a loopback address and the lines of a hosts file;
// 2. WriteHosts merges them into the hosts file of a container.
//
// Owns: the table consul_ecs of nftables, and its block of the hosts file.
// Never does: retry, log, or touch tables of others.
// Start reading at: Settings, then Tables.
package redirect
