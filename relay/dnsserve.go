package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// mostQuery is the length of the longest query.
	mostQuery = 4096
	// mostBuffered are bytes of queries that wait in the kernel. Linux grants what net.core.rmem_max
	// allows, of which its default is half. A query for which there is no room is lost, and its
	// client asks another name server, which does not know Consul's names.
	mostBuffered = 1 << 20
	// mostConnections bounds the connections of clients over TCP. One more takes the place of the one
	// that has been idle longest, or waits.
	mostConnections = 64
	// clientIdle is how long a connection may be silent, and sendLimit bounds the send of an
	// answer.
	clientIdle = 10 * time.Second
	sendLimit  = 2 * time.Second
	// acceptPause is the time between two failures to receive or to accept.
	acceptPause = 100 * time.Millisecond
)

// Serve answers the queries that arrive at both sockets until ctx ends; then it returns nil.
// It closes both. They must be on loopback, since any client that reaches them uses the token.
func (d *DNS) Serve(ctx context.Context, packets net.PacketConn, streams net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		packets.Close()
		streams.Close()
		d.links.retain(nil)
	})
	defer stop()
	waiting := make(chan struct{}, mostQueries)
	var running sync.WaitGroup
	failures := make(chan error, 2)
	running.Go(func() { failures <- d.servePackets(ctx, packets, waiting) })
	running.Go(func() { failures <- d.serveStreams(ctx, streams, waiting) })
	err := <-failures
	cancel()
	running.Wait()
	return err
}

// respond returns the answer to a message, and nil when it gets none.
func (d *DNS) respond(ctx context.Context, message []byte, udp bool) []byte {
	q, err := parseQuery(message, udp)
	switch {
	case errors.Is(err, errNoQuery):
		return nil
	case err != nil:
		return q.refuse(dnsmessage.RCodeFormatError)
	}
	return d.answer(ctx, q)
}

// servePackets answers queries over UDP.
func (d *DNS) servePackets(ctx context.Context, packets net.PacketConn, waiting chan struct{}) error {
	if conn, ok := packets.(*net.UDPConn); ok {
		_ = conn.SetReadBuffer(mostBuffered) // without it there is room for less
	}
	var running sync.WaitGroup
	defer running.Wait()
	for buf := make([]byte, mostQuery+1); ; {
		n, client, err := packets.ReadFrom(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("receive DNS queries on %s: %w", packets.LocalAddr(), err)
		case err != nil:
			_ = retry.Sleep(ctx, acceptPause)
			continue
		case n > mostQuery:
			continue
		}
		message := append([]byte(nil), buf[:n]...)
		waiting <- struct{}{}
		running.Go(func() {
			defer func() { <-waiting }()
			if answer := d.respond(ctx, message, true); answer != nil {
				// A client that is gone, or a full buffer: as when a packet is lost.
				_, _ = packets.WriteTo(answer, client)
			}
		})
	}
}

// serveStreams answers queries over TCP.
func (d *DNS) serveStreams(ctx context.Context, streams net.Listener, waiting chan struct{}) error {
	var running sync.WaitGroup
	defer running.Wait()
	all := clients{pending: map[net.Conn]int{}}
	for open := make(chan struct{}, mostConnections); ; {
		conn, err := streams.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept DNS connections on %s: %w", streams.Addr(), err)
		case err != nil:
			_ = retry.Sleep(ctx, acceptPause)
			continue
		}
		select {
		case open <- struct{}{}:
		default:
			all.evict()
			open <- struct{}{}
		}
		running.Go(func() {
			defer func() { <-open }()
			d.serveStream(ctx, conn, &all, waiting)
		})
	}
}

// serveStream answers the queries of a connection, each as soon as it can be, until the client
// closes it, is silent for clientIdle, or takes no answers.
func (d *DNS) serveStream(ctx context.Context, conn net.Conn, all *clients, waiting chan struct{}) {
	defer conn.Close()
	all.add(conn, 0)
	defer all.remove(conn)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	var sending sync.Mutex
	for {
		_ = conn.SetReadDeadline(time.Now().Add(clientIdle)) // a closed connection has no deadline
		message, err := readFramed(conn)
		if err != nil {
			return
		}
		all.add(conn, 1)
		waiting <- struct{}{}
		running.Go(func() {
			defer all.add(conn, -1)
			defer func() { <-waiting }()
			answer := d.respond(ctx, message, false)
			if answer == nil {
				return
			}
			sending.Lock()
			defer sending.Unlock()
			if err := writeFramed(conn, answer); err != nil {
				conn.Close()
			}
		})
	}
}

// readFramed reads a message after its length.
func readFramed(conn net.Conn) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > mostQuery {
		return nil, fmt.Errorf("the query has %d bytes, more than %d", n, mostQuery)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(conn, message)
	return message, err
}

// writeFramed writes a message after its length.
func writeFramed(conn net.Conn, message []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(sendLimit))
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
