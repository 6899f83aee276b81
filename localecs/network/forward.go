package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// Forwarder forwards TCP connections from a listener to targets, in turn.
type Forwarder struct {
	Listener *net.TCPListener
	// Targets returns the addresses that a new connection may go to. While there is none a connection waits
	// for one, for Wait.
	Targets func() []string
	Wait    time.Duration
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Log     hclog.Logger

	turn atomic.Uint32
}

const (
	targetPause   = 50 * time.Millisecond
	targetTimeout = 2 * time.Second
)

// Serve forwards connections until the context ends, which closes them. The listener stays open.
func (f *Forwarder) Serve(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = f.Listener.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { _ = f.Listener.SetDeadline(time.Unix(1, 0)) })()
	for {
		c, err := f.Listener.AcceptTCP()
		if err != nil {
			if ctx.Err() == nil {
				f.Log.Error("forwarded port does not accept connections any more", logkey.Address, f.Listener.Addr(),
					logkey.Error, err)
			}
			return
		}
		serving.Go(func() { f.forward(ctx, c) })
	}
}

func (f *Forwarder) forward(ctx context.Context, from *net.TCPConn) {
	defer from.Close()
	to, err := f.connect(ctx)
	if err != nil {
		_ = from.SetLinger(0) // a reset: no task has read anything
		f.Log.Warn("connection was refused", logkey.Address, f.Listener.Addr(), logkey.Error, err)
		return
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	var copying sync.WaitGroup
	copying.Go(func() { send(to, from) })
	send(from, to)
	copying.Wait()
}

// connect tries each target once, the next in turn first, and again until Wait is over.
func (f *Forwarder) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	failed := errors.New("no healthy task runs")
	for {
		targets, turn := f.Targets(), int(f.turn.Add(1))
		for i := range targets {
			dialCtx, done := context.WithTimeout(ctx, targetTimeout)
			c, err := f.Dial(dialCtx, "tcp", targets[(turn+i)%len(targets)])
			done()
			if err == nil {
				return c, nil
			}
			failed = err
		}
		select {
		case <-ctx.Done():
			return nil, failed
		case <-time.After(targetPause):
		}
	}
}

// send copies until the source ends, and ends the destination's input; after an error both are closed.
func send(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}
