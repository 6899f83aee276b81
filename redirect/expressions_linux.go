package redirect

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers of the kernel's machine that rules run on. Values are matched in the first.
const (
	value   = 1
	address = 1
	port    = 2
)

// Offsets of the destination in packets' headers.
const (
	destinationIPv4 = 16
	destinationIPv6 = 24
	destinationPort = 2
)

// expressions returns the rule as the kernel runs it.
func expressions(r Rule, v6 bool) []expr.Any {
	var out []expr.Any
	if r.Protocol != "" {
		number := byte(unix.IPPROTO_TCP)
		if r.Protocol == protocolUDP {
			number = unix.IPPROTO_UDP
		}
		out = append(out, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: value}, equals([]byte{number}))
	}
	if r.Destination.IsValid() {
		out = append(out, matchDestination(r.Destination, v6)...)
	}
	if r.Port != 0 {
		out = append(out,
			&expr.Payload{DestRegister: value, Base: expr.PayloadBaseTransportHeader, Offset: destinationPort, Len: 2},
			equals(bigEndian16(r.Port)))
	}
	if r.UIDs != nil {
		// Ranges are compared byte by byte: the user comes in the machine's byte order.
		out = append(out,
			&expr.Meta{Key: expr.MetaKeySKUID, Register: value},
			&expr.Byteorder{SourceRegister: value, DestRegister: value, Op: expr.ByteorderHton, Len: 4, Size: 4},
			&expr.Range{
				Op: expr.CmpOpEq, Register: value, FromData: bigEndian32(r.UIDs.First),
				ToData: bigEndian32(r.UIDs.Last),
			})
	}
	return append(out, target(r)...)
}

func matchDestination(p netip.Prefix, v6 bool) []expr.Any {
	size, offset := uint32(net.IPv4len), uint32(destinationIPv4)
	if v6 {
		size, offset = net.IPv6len, destinationIPv6
	}
	return []expr.Any{
		&expr.Payload{DestRegister: value, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{
			SourceRegister: value, DestRegister: value, Len: size,
			Mask: net.CIDRMask(p.Bits(), int(size)*8), Xor: make([]byte, size),
		},
		equals(p.Addr().AsSlice()),
	}
}

// target returns what the rule does with a connection that matches.
func target(r Rule) []expr.Any {
	switch {
	case r.Jump != "":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: r.Jump}}
	case r.Redirect != 0:
		return []expr.Any{
			&expr.Immediate{Register: port, Data: bigEndian16(r.Redirect)},
			&expr.Redir{RegisterProtoMin: port},
		}
	case r.To.IsValid():
		return []expr.Any{
			&expr.Immediate{Register: address, Data: r.To.Addr().AsSlice()},
			&expr.Immediate{Register: port, Data: bigEndian16(int(r.To.Port()))},
			&expr.NAT{
				Type: expr.NATTypeDestNAT, Family: uint32(nftables.TableFamilyIPv4),
				RegAddrMin: address, RegProtoMin: port,
			},
		}
	default:
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}
	}
}

func equals(data []byte) *expr.Cmp {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: value, Data: data}
}

func bigEndian16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }

func bigEndian32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
