package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// network has addresses that refuse connections, drop packets, or accept.
type network struct {
	mu      sync.Mutex
	accepts map[string]bool
	drops   map[string]bool
	dialled []string
}

// use makes an XDS dial in the network.
func (n *network) use(t *testing.T, r *XDS) {
	r.connector.dialer = func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		n.dialled = append(n.dialled, address)
		accepts, drops := n.accepts[address], n.drops[address]
		n.mu.Unlock()
		switch {
		case accepts:
			near, far := net.Pipe()
			go func() {
				buf := make([]byte, 1024)
				for _, err := far.Read(buf); err == nil; _, err = far.Read(buf) {
				}
			}()
			return near, nil
		case drops:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errors.New("connection refused")
	}
}

func (n *network) add(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accepts = map[string]bool{address: true}
}

func TestConnectionMovesOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		network *network
		// change happens after 4 min.
		change func(*servers, *network)
		want   string
		after  time.Duration
	}{
		"past refusals at once": {&network{accepts: map[string]bool{third: true}}, nil, third, 0},
		"past an address that drops": {
			&network{accepts: map[string]bool{second: true}, drops: map[string]bool{first: true}},
			nil, second, connectLimit,
		},
		"from a pause to a new server": {
			&network{}, func(s *servers, n *network) {
				n.add("10.0.0.9:8502")
				s.set(first, second, third, "10.0.0.9:8502")
			},
			"10.0.0.9:8502", 4 * time.Minute,
		},
		"from a dial to a new server": {
			&network{drops: map[string]bool{first: true, second: true, third: true}},
			func(s *servers, n *network) {
				n.add("10.0.0.9:8502")
				s.set("10.0.0.9:8502", first, second, third)
			},
			"10.0.0.9:8502", 4 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newServers(first, second, third)
				r, log := quiet(set)
				tc.network.use(t, r)
				if tc.change != nil {
					time.AfterFunc(4*time.Minute, func() { tc.change(set, tc.network) })
				}
				start := time.Now()
				s, err := r.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.conn.Close()
				if s.address != tc.want {
					t.Errorf("connected to %s, want %s", s.address, tc.want)
				}
				if took := time.Since(start); took != tc.after {
					t.Errorf("connected after %s, want %s:\n%s", took, tc.after, log)
				}
			})
		})
	}
}

// An outage of hours costs each server few connections.
func TestConnectionsDuringAnOutageAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := quiet(newServers(first, second, third))
		n := &network{}
		n.use(t, r)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if _, err := r.open(ctx); err == nil {
			t.Error("connected")
		}
		t.Logf("%d dials in an hour", len(n.dialled))
	})
}

func TestHandshakeIsBounded(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	frozen := testkit.ReservePort(t)
	frozen.Listen()
	r := NewXDS(XDSConfig{
		Servers: newServers(), TLS: fixed(&tls.Config{InsecureSkipVerify: true}), Log: hclog.NewNullLogger(),
	})
	start := time.Now()
	_, _, err := r.connector.connect(t.Context(), frozen.String())
	if err == nil || !strings.Contains(err.Error(), "TLS handshake: context deadline exceeded") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > connectLimit+time.Second {
		t.Errorf("took %s", took)
	}
}

// A token file that is lost is no reason to end a stream, nor to open one without a token.
func TestLostTokenKeepsTheStreamAndOpensNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := &tokenFile{err: errors.New("service-token is missing or empty")}
		r, log := quiet(newServers(first))
		r.config.Token = file.read
		n := &network{accepts: map[string]bool{first: true}}
		n.use(t, r)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := r.outdated(ctx, streamFrom(first, true)); err != nil {
			t.Errorf("ended the stream: %v", err)
		}
		if got := strings.Count(log.String(),
			"[WARN]  token was not read, the xDS stream keeps the one it has"); got == 0 {
			t.Errorf("no warning:\n%s", log)
		}
		ctx, stop = context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := r.open(ctx); err == nil {
			t.Error("opened a stream")
		}
		if len(n.dialled) != 0 {
			t.Errorf("dialled %v", n.dialled)
		}
	})
}
