package network

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// What a socket that takes connections or packets has in the column st: TCP's
// LISTEN, and for UDP a socket without a peer.
const (
	tcpListen   = "0A"
	udpUnjoined = "07"
)

// listeners are the addresses of a table such as /proc/net/tcp (proc_net_tcp in
// the kernel's documentation) at which a program listens. Lines that are not of
// its form are left out.
func listeners(table, protocol string) []netip.AddrPort {
	state := tcpListen
	if protocol == "udp" {
		state = udpUnjoined
	}
	var found []netip.AddrPort
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != state {
			continue
		}
		if at, ok := localAddress(fields[1]); ok {
			found = append(found, at)
		}
	}
	return found
}

// localAddress reads 0100007F:1F90: words of four bytes in the machine's own
// order, then the port.
func localAddress(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, false
	}
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(number)), ok
}
