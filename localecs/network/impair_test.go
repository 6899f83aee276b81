package network

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// silence is how long nothing must come.
const silence = 400 * time.Millisecond

// vpcs is a VPC with tasks a, b and c, a service, and something that echoes at
// port 7000 of each, at the gateway's, and where a finds its metadata.
type vpcs struct {
	*Fabric
	t       *testing.T
	a, b, c *Namespace
	service netip.Addr
}

func newVPCs(t *testing.T) *vpcs {
	f := newFabric(t, Options{})
	v := &vpcs{Fabric: f, t: t, a: attach(t, f, "a"), b: attach(t, f, "b"), c: attach(t, f, "c")}
	var err error
	if v.service, err = f.AddInfraAddress(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Namespace{v.a, v.b, v.c, f.Infra()} {
		l, err := n.Listen("tcp", "0.0.0.0:7000")
		if err != nil {
			t.Fatal(err)
		}
		echo(t, l)
	}
	l, err := v.a.ListenMetadata()
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	return v
}

func echo(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
}

// dialer is who dials: a context, and an address.
type dialer func(ctx context.Context) (net.Conn, error)

// flows returns connections, by who dials whom.
func (v *vpcs) flows() map[string]dialer {
	at := func(n *Namespace, address string) dialer {
		return func(ctx context.Context) (net.Conn, error) { return n.DialContext(ctx, "tcp", address) }
	}
	port := func(ip netip.Addr) string { return ip.String() + ":7000" }
	return map[string]dialer{
		"a to b":        at(v.a, port(v.b.IP)),
		"b to a":        at(v.b, port(v.a.IP)),
		"a to c":        at(v.a, port(v.c.IP)),
		"b to c":        at(v.b, port(v.c.IP)),
		"a to service":  at(v.a, port(v.service)),
		"b to service":  at(v.b, port(v.service)),
		"service to a":  v.asService(&net.Dialer{LocalAddr: &net.TCPAddr{IP: v.service.AsSlice()}}),
		"a to gateway":  at(v.a, port(v.Infra().Gateway)),
		"gateway to a":  at(v.Infra(), port(v.a.IP)),
		"a to metadata": at(v.a, MetadataIP+":80"),
	}
}

// asService dials a as a program in the VPC does.
func (v *vpcs) asService(d *net.Dialer) dialer {
	return func(ctx context.Context) (c net.Conn, err error) {
		err = v.Infra().Do(func() error {
			c, err = d.DialContext(ctx, "tcp", v.a.IP.String()+":7000")
			return err
		})
		return c, err
	}
}

// connect dials; the error after a while is a timeout.
func connect(d dialer, patience time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d(ctx)
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// hear waits for one byte.
func hear(c net.Conn, patience time.Duration) error {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func mustEnd(t *testing.T, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// link returns a namespace's.
func link(t *testing.T, n *Namespace) *Task {
	t.Helper()
	l, err := n.Link()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPartition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act func(v *vpcs) (func() error, error)
		cut []string
	}{
		"from a task": {
			func(v *vpcs) (func() error, error) { return link(v.t, v.a).CutFrom(link(v.t, v.b)) },
			[]string{"a to b", "b to a"},
		},
		"from services": {
			func(v *vpcs) (func() error, error) { return link(v.t, v.a).CutFromServices() },
			[]string{"a to service", "service to a"},
		},
		"from all": {
			func(v *vpcs) (func() error, error) { return link(v.t, v.a).CutFromAll() },
			[]string{"a to b", "a to c", "a to gateway", "a to service", "b to a", "gateway to a", "service to a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVPCs(t)
			open := map[string]net.Conn{}
			for name, dial := range v.flows() {
				conn, err := connect(dial, testkit.Patience)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				t.Cleanup(func() { conn.Close() })
				open[name] = conn
			}
			end, err := c.act(v)
			if err != nil {
				t.Fatal(err)
			}
			v.compare(c.cut, open)
			mustEnd(t, end)
			mustEnd(t, end)
			for _, name := range c.cut {
				// What was sent meanwhile comes now.
				if err := hear(open[name], testkit.Patience); err != nil {
					t.Errorf("%s, afterwards: %v", name, err)
				}
			}
			v.compare(nil, open)
		})
	}
}

// compare sends a byte over each connection and makes another one, and wants those that are cut to be silent.
func (v *vpcs) compare(cut []string, open map[string]net.Conn) {
	v.t.Helper()
	patience := func(name string) time.Duration {
		if slices.Contains(cut, name) {
			return silence
		}
		return testkit.Patience
	}
	var silent, unreachable []string
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if _, err := open[name].Write([]byte{'x'}); err != nil {
			v.t.Errorf("%s: write: %v", name, err)
		}
		if err := hear(open[name], patience(name)); errors.Is(err, os.ErrDeadlineExceeded) {
			silent = append(silent, name)
		} else if err != nil {
			v.t.Errorf("%s: %v", name, err)
		}
		c, err := connect(v.flows()[name], patience(name))
		if err == nil {
			c.Close()
		} else if unreachable = append(unreachable, name); !isTimeout(err) {
			v.t.Errorf("%s: dial: %v; want a timeout", name, err)
		}
	}
	if d := cmp.Diff(cut, silent); d != "" {
		v.t.Errorf("silent connections (-want +got):\n%s", d)
	}
	if d := cmp.Diff(cut, unreachable); d != "" {
		v.t.Errorf("silent ports (-want +got):\n%s", d)
	}
}

// A program that leaves its address to the kernel is cut off as well, and reaches the task when it tries on.
func TestPartitionFromServicesOfAnyAddress(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	dial := v.asService(&net.Dialer{})
	if c, err := connect(dial, testkit.Patience); err != nil {
		t.Fatal(err)
	} else {
		c.Close()
	}
	end, err := link(t, v.a).CutFromServices()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(dial, silence); !isTimeout(err) {
		t.Errorf("dial: %v; want a timeout", err)
	}
	result := make(chan error)
	go func() {
		_, err := connect(dial, testkit.Patience)
		result <- err
	}()
	mustEnd(t, end)
	if err := <-result; err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// rules returns the VPC's routing rules, an act's without its place.
func (v *vpcs) rules() []string {
	v.t.Helper()
	list, err := v.vpc.link.RuleList(netlink.FAMILY_V4)
	if err != nil {
		v.t.Fatal(err)
	}
	var all []string
	for _, r := range list {
		all = append(all, strings.TrimSpace(r.String()+" "+r.IifName))
	}
	return all
}

func TestPartitionsOverlapAndEndWithTheTask(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	a, b := link(t, v.a), link(t, v.b)
	var ends []func() error
	add := func(end func() error, err error) {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	add(a.CutFrom(b))
	mustEnd(t, ends[0])
	before := v.rules()
	add(a.CutFrom(b))
	add(b.CutFrom(a))
	add(a.CutFrom(b))
	add(a.CutFromServices())
	add(a.CutFromAll())
	add(b.CutFromAll())
	mustEnd(t, ends[1])
	mustEnd(t, ends[4])
	mustEnd(t, ends[5])
	mustEnd(t, ends[6])
	if _, err := connect(v.flows()["a to b"], silence); !isTimeout(err) {
		t.Errorf("dial: %v; want a timeout as long as one lasts", err)
	}
	if err := v.a.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, v.rules()); d != "" {
		t.Errorf("rules after the task's end (-before +after):\n%s", d)
	}
	for _, end := range ends {
		mustEnd(t, end)
	}
	for _, act := range []func() (func() error, error){
		a.CutFromAll, a.CutFromServices, func() (func() error, error) { return a.CutFrom(b) },
		func() (func() error, error) { return b.CutFrom(a) }, func() (func() error, error) { return a.Limit(100) },
	} {
		if _, err := act(); !errors.Is(err, ErrGone) {
			t.Errorf("act on a task that has ended: %v", err)
		}
	}
	if d := cmp.Diff(before, v.rules()); d != "" {
		t.Errorf("rules in the end (-before +after):\n%s", d)
	}
}

func TestPartitionFromNoServices(t *testing.T) {
	t.Parallel()
	a := link(t, attach(t, newFabric(t, Options{}), "a"))
	if _, err := a.CutFromServices(); !errors.Is(err, errNoServices) {
		t.Errorf("got %v", err)
	}
	// What lasts at the fabric's end is no error of it.
	if _, err := a.CutFromAll(); err != nil {
		t.Error(err)
	}
	if _, err := a.Limit(100); err != nil {
		t.Error(err)
	}
}

func TestHostHasNoLinks(t *testing.T) {
	t.Parallel()
	if _, err := attach(t, newHost(t), "a").Link(); !errors.Is(err, ErrHostNetwork) {
		t.Errorf("got %v", err)
	}
}

// Datagrams need no answer, as those of gossip: each direction for itself.
func TestPartitionDropsDatagramsBothWays(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	const port = ":7001"
	open := func(n *Namespace, ip netip.Addr) net.PacketConn {
		c, err := n.ListenPacket("udp", ip.String()+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b, service := open(v.a, v.a.IP), open(v.b, v.b.IP), open(v.Infra(), v.service)
	ways := map[string]struct{ from, to net.PacketConn }{
		"a to b": {a, b}, "b to a": {b, a}, "a to service": {a, service}, "service to a": {service, a}, "b to service": {b, service},
	}
	arrives := func(name string, patience time.Duration) bool {
		w := ways[name]
		// What cannot be sent is lost, too.
		_, _ = w.from.WriteTo([]byte(name), w.to.LocalAddr())
		_ = w.to.SetReadDeadline(time.Now().Add(patience))
		text := make([]byte, 100)
		n, _, err := w.to.ReadFrom(text)
		return err == nil && string(text[:n]) == name
	}
	for cut, act := range map[string]func() (func() error, error){
		"a to b, b to a":                             func() (func() error, error) { return link(t, v.a).CutFrom(link(t, v.b)) },
		"a to service, service to a":                 link(t, v.a).CutFromServices,
		"a to b, b to a, a to service, service to a": link(t, v.a).CutFromAll,
	} {
		end, err := act()
		if err != nil {
			t.Fatal(err)
		}
		for name := range ways {
			isCut := strings.Contains(cut, name)
			patience := testkit.Patience
			if isCut {
				patience = silence / 4
			}
			if arrives(name, patience) == isCut {
				t.Errorf("%s are cut: %s arrives %t", cut, name, !isCut)
			}
		}
		mustEnd(t, end)
	}
	for name := range ways {
		if !arrives(name, testkit.Patience) {
			t.Errorf("%s does not arrive afterwards", name)
		}
	}
}
