package testkit

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// A ReservedPort is a TCP port of 127.0.0.1 that refuses connections until Listen. It
// is bound all the time: a port that a test merely closed may be given to the next
// server that listens, in another test or process.
type ReservedPort struct {
	net.TCPAddr
	tb     testing.TB
	socket *os.File
}

// ReservePort reserves a port until the test ends.
func ReservePort(tb testing.TB) *ReservedPort {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		tb.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "reserved port")
	tb.Cleanup(func() { socket.Close() })
	loopback := [4]byte{127, 0, 0, 1}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: loopback}); err != nil {
		tb.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatal(err)
	}
	return &ReservedPort{
		TCPAddr: net.TCPAddr{IP: loopback[:], Port: name.(*syscall.SockaddrInet4).Port},
		tb:      tb,
		socket:  socket,
	}
}

// Listen accepts connections from now on, until the test ends.
func (p *ReservedPort) Listen() net.Listener {
	p.tb.Helper()
	if err := syscall.Listen(int(p.socket.Fd()), syscall.SOMAXCONN); err != nil {
		p.tb.Fatal(err)
	}
	l, err := net.FileListener(p.socket)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(func() { l.Close() })
	return l
}
