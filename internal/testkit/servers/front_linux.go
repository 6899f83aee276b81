package servers

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Front is a machine that passes everything on to one real server, so that the fleet of servers may be
// large. It answers itself which servers there are.
type Front struct {
	*Host
	fail atomic.Pointer[func(*http.Request) int]

	mu                sync.Mutex
	requests, streams map[netip.Addr]int
}

// Fronts adds n machines in front of the server. All are peers.
func (v *VPC) Fronts(c *testkit.Consul, n int) []*Front {
	v.now.Helper()
	var fronts []*Front
	var peers []string
	for i := range n {
		f := &Front{
			Host: v.Host(fmt.Sprintf("front-%d", i)), requests: map[netip.Addr]int{}, streams: map[netip.Addr]int{},
		}
		fronts = append(fronts, f)
		peers = append(peers, net.JoinHostPort(f.IP.String(), "8300"))
	}
	for _, f := range fronts {
		f.serveHTTP(c.HTTPAddr, peers)
		f.serveGRPC(c.GRPCAddr)
	}
	return fronts
}

// Requests returns how many HTTP requests of the machine have arrived.
func (f *Front) Requests(from *Host) int { return f.arrived(f.requests, from) }

// Streams returns how many connections for xDS of the machine have arrived.
func (f *Front) Streams(from *Host) int { return f.arrived(f.streams, from) }

func (f *Front) arrived(counts map[netip.Addr]int, from *Host) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return counts[from.IP]
}

func (f *Front) count(counts map[netip.Addr]int, from string) {
	address, err := netip.ParseAddrPort(from)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	counts[address.Addr().Unmap()]++
}

// Fail answers a request with a status in place of the server, unless it is 0; nil ends that.
func (f *Front) Fail(status func(*http.Request) int) { f.fail.Store(&status) }

func (f *Front) failure(r *http.Request) int {
	if status := f.fail.Load(); status != nil && *status != nil {
		return (*status)(r)
	}
	return 0
}

func (f *Front) listen(port int) net.Listener {
	f.vpc.now.Helper()
	l, err := f.Listen("tcp", fmt.Sprintf("%s:%d", f.IP, port))
	if err != nil {
		f.vpc.now.Fatal(err)
	}
	f.vpc.now.Cleanup(func() { l.Close() })
	return l
}

func (f *Front) serveHTTP(server string, peers []string) {
	f.vpc.now.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	handler := func(w http.ResponseWriter, r *http.Request) {
		f.count(f.requests, r.RemoteAddr)
		status := f.failure(r)
		switch {
		case status != 0:
			http.Error(w, "set by the test", status)
		case strings.HasPrefix(r.URL.Path, "/v1/status/peers"):
			_ = json.NewEncoder(w).Encode(peers) // an error means the client is gone
		default:
			proxy.ServeHTTP(w, r)
		}
	}
	s := &http.Server{Handler: http.HandlerFunc(handler)}
	l := f.listen(HTTPPort)
	f.vpc.now.Cleanup(func() { s.Close() })
	go s.Serve(l)
}

func (f *Front) serveGRPC(server string) {
	f.vpc.now.Helper()
	l := f.listen(GRPCPort)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			f.count(f.streams, client.RemoteAddr().String())
			go pipe(client, server)
		}
	}()
}

// pipe passes a connection on until one side ends it.
func pipe(client net.Conn, server string) {
	defer client.Close()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, conn}, {conn, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
