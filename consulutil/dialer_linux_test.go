package consulutil

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestConnectionsEndWhenTheirServerIsSilent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := newDialer().DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[int]int{
		unix.TCP_USER_TIMEOUT: int(silenceLimit.Milliseconds()),
		unix.TCP_KEEPIDLE:     int(probeAfter / time.Second),
		unix.TCP_KEEPINTVL:    int(silenceLimit / time.Second),
	} {
		var got int
		read := func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option) }
		if err := raw.Control(read); err != nil {
			t.Fatal(err)
		}
		if err != nil || got != want {
			t.Errorf("option %d: %d, %v, want %d", option, got, err, want)
		}
	}
}
