package network

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// forwarding serves a forwarder to targets until the test ends, and returns its address.
func forwarding(t *testing.T, wait time.Duration, targets func() []string) string {
	t.Helper()
	l := loopbackListener(t)
	f := &Forwarder{
		Listener: l, Targets: targets, Wait: wait, Dial: new(net.Dialer).DialContext, Log: hclog.NewNullLogger(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		f.Serve(ctx)
		close(served)
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	return l.Addr().String()
}

func loopbackListener(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// named serves a target that reads all of a connection and answers with its name.
func named(t *testing.T, name string) string {
	t.Helper()
	l := loopbackListener(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				data, _ := io.ReadAll(c)
				io.WriteString(c, name+" "+string(data))
			}()
		}
	}()
	return l.Addr().String()
}

// roundTrip sends a text, ends its side, and returns the answer.
func roundTrip(t *testing.T, address, text string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, text)
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// Connections go to the targets in turn, those that refuse are left out, and each side ends by itself.
func TestForwarderTakesTargetsInTurn(t *testing.T) {
	t.Parallel()
	gone := loopbackListener(t)
	gone.Close()
	targets := []string{named(t, "a"), gone.Addr().String(), named(t, "b")}
	address := forwarding(t, time.Minute, func() []string { return targets })
	answers := map[string]int{}
	for range 9 {
		answer, err := roundTrip(t, address, "hello")
		if err != nil {
			t.Fatal(err)
		}
		answers[answer]++
	}
	testkit.Equal(t, "kinds of answers", len(answers), 2)
	if answers["a hello"] < 3 || answers["b hello"] < 3 {
		t.Errorf("got %v, want at least 3 of each", answers)
	}
}

func TestForwarderWaitsForATarget(t *testing.T) {
	t.Parallel()
	target := named(t, "a")
	var asked atomic.Int32
	address := forwarding(t, time.Minute, func() []string {
		if asked.Add(1) < 4 {
			return nil
		}
		return []string{target}
	})
	answer, err := roundTrip(t, address, "hello")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "answer", answer, "a hello")
}

// A connection that no task takes is reset: an empty answer would look like one of the task.
func TestForwarderResetsWhatNoTaskTakes(t *testing.T) {
	t.Parallel()
	address := forwarding(t, 10*time.Millisecond, func() []string { return nil })
	_, err := roundTrip(t, address, "hello")
	testkit.ErrorContains(t, err, "reset")
}

// The end of the run closes connections that are open, and leaves the listener to the next one.
func TestForwarderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, target := loopbackListener(t), loopbackListener(t)
	f := &Forwarder{
		Listener: l, Targets: func() []string { return []string{target.Addr().String()} }, Wait: time.Minute,
		Dial: new(net.Dialer).DialContext, Log: hclog.NewNullLogger(),
	}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			f.Serve(ctx)
			close(served)
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		inside, err := target.Accept()
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-served
		c.SetDeadline(time.Now().Add(30 * time.Second))
		_, err = c.Read(make([]byte, 1))
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection is still open: %v", err)
		}
		c.Close()
		inside.Close()
	}
}
