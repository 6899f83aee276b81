package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// mostQueries bounds the queries of clients that wait for an answer, and mostAsked those at
	// the servers: while no server answers, clients wait for a shorter time.
	mostQueries = 128
	mostAsked   = 2 * mostQueries
)

// DNSConfig is what a DNS works with. Servers, TLS and Token are as in XDSConfig.
type DNSConfig struct {
	Servers Servers
	TLS     func() (*tls.Config, error)
	Token   func() (string, error)
	// Namespace and Partition are those of the task, for names that have none; empty without
	// Consul Enterprise.
	Namespace, Partition string
	Log                  hclog.Logger
}

// DNS answers a task's DNS queries with the replies of Consul servers.
type DNS struct {
	config DNSConfig
	asker  asker
	links  *links
	memory *dnsMemory
	asked  chan struct{} // has a value for each query at the servers
	report dnsReport
}

// NewDNS returns a DNS that is not started: Serve does it.
func NewDNS(c DNSConfig) *DNS {
	d := &DNS{
		config: c, memory: newDNSMemory(), asked: make(chan struct{}, mostAsked), report: dnsReport{log: c.Log},
	}
	d.asker = asker{known: d.known, exchange: d.exchange}
	connector := newConnector(c.TLS)
	d.links = newLinks(func(ctx context.Context, address string) (*http.ClientConn, error) {
		conn, _, err := connector.connect(ctx, address)
		if err != nil {
			c.Servers.GRPCFailed(address, err)
			return nil, fmt.Errorf("connect to Consul server %s: %w%s", address, err, advice(err))
		}
		return conn, nil
	})
	return d
}

// known returns the servers that are known now. Their discovery is not awaited: the query to
// answer may be a part of it.
func (d *DNS) known() []string {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	addresses, err := d.config.Servers.GRPCAddresses(ctx)
	if err != nil {
		return nil
	}
	d.links.retain(addresses)
	return addresses
}

// answer returns the answer to a query within askLimit: the reply of a server, the last one to
// the same question when no server serves, or a failure, after which clients ask their next
// name server.
func (d *DNS) answer(ctx context.Context, q query) []byte {
	replied := make(chan []byte, 1)
	select {
	case d.asked <- struct{}{}:
		go func() { // which may take longer than the client waits
			defer func() { <-d.asked }()
			replied <- d.ask(ctx, q)
		}()
	default:
		replied <- nil
	}
	limit := time.NewTimer(d.asker.limit())
	defer limit.Stop()
	select {
	case message := <-replied:
		if message != nil {
			return message
		}
	case <-limit.C:
	}
	if last, ok := d.memory.get(q.question, time.Now()); ok {
		if message, err := q.repeat(last); err == nil {
			return message
		}
	}
	return q.refuse(dnsmessage.RCodeServerFailure)
}

// ask returns the answer that the reply of a server gives, and nil when there is none or it is
// of no use.
func (d *DNS) ask(ctx context.Context, q query) []byte {
	got, err := d.asker.ask(ctx, q)
	switch {
	case ctx.Err() != nil || errors.Is(err, errNoServer):
		return nil
	case err != nil:
		d.report.failed(err)
		return nil
	}
	if got.refusal != nil { // the servers are there: what they answered earlier does not count
		d.report.refused(got.refusal)
		return q.refuse(dnsmessage.RCodeRefused)
	}
	d.report.replied()
	switch {
	case !got.serves():
		d.config.Log.Debug("Consul servers failed to answer a DNS query", logkey.Object, q.name)
		return nil
	case got.code == dnsmessage.RCodeNameError && q.reverse():
		// Consul knows the addresses of its services only; clients ask their next name server.
		return q.refuse(dnsmessage.RCodeRefused)
	case got.code == dnsmessage.RCodeSuccess || got.code == dnsmessage.RCodeNameError:
		d.memory.put(q.question, got.message, time.Now())
	}
	return q.fit(got.message, got.code)
}

// dnsReport logs when the servers cease to answer, and when they answer again.
type dnsReport struct {
	log              hclog.Logger
	causes, refusals retry.Causes

	mu    sync.Mutex
	since time.Time // of the first failure; zero while servers answer
}

// failed logs that no server has answered.
func (r *dnsReport) failed(err error) {
	r.mu.Lock()
	if r.since.IsZero() {
		r.since = time.Now()
	}
	elapsed := time.Since(r.since)
	r.mu.Unlock()
	r.log.Log(r.causes.Level(err), "no Consul server answers DNS queries, names are answered as they were last",
		logkey.Elapsed, elapsed.Round(time.Second), logkey.Error, err)
}

// refused logs that the servers refuse a query.
func (r *dnsReport) refused(err error) {
	r.replied()
	r.log.Log(r.refusals.Level(err), "the Consul servers refuse DNS queries, clients ask their next name server",
		logkey.Error, err)
}

// replied logs the end of failures.
func (r *dnsReport) replied() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() {
		r.log.Info("a Consul server answers DNS queries again", logkey.Elapsed, time.Since(r.since).Round(time.Second))
		r.since = time.Time{}
	}
}
