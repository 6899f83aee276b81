package network

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func newHost(t *testing.T) *Fabric {
	t.Helper()
	// A subnet only for this package: other programs may listen at others.
	return newFabric(t, Options{Mode: Host, Subnet: "127.243.17.0/24"})
}

func TestHostTasksHaveAddressesAndTheHostsNetwork(t *testing.T) {
	t.Parallel()
	f := newHost(t)
	a, b := attach(t, f, "a"), attach(t, f, "b")
	testkit.Equal(t, "addresses", [2]string{a.IP.String(), b.IP.String()}, [2]string{"127.243.17.4", "127.243.17.5"})
	testkit.Equal(t, "file of a", a.File(), nil)
	testkit.Equal(t, "file of the infrastructure", f.Infra().File(), nil)
	l := serve(t, a, a.IP.String()+":0", "a")
	for _, from := range []*Namespace{a, b, f.Infra()} {
		if got, err := ask(from, l.Addr().String()); got != "a" || err != nil {
			t.Errorf("from %s: %q, %v", from.IP, got, err)
		}
	}
	extra, err := f.AddInfraAddress()
	if err != nil || extra.String() != "127.243.17.254" {
		t.Errorf("infrastructure address %s, %v", extra, err)
	}
	l = serve(t, f.Infra(), extra.String()+":0", "service")
	if got, err := ask(b, l.Addr().String()); got != "service" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHostListensAtFreePorts(t *testing.T) {
	t.Parallel()
	f := newHost(t)
	seen := map[string]bool{}
	for _, c := range []struct {
		listen func() (net.Listener, error)
		host   string
	}{
		{attach(t, f, "a").ListenMetadata, "127.0.0.1"},
		{attach(t, f, "b").ListenMetadata, "127.0.0.1"},
		{func() (net.Listener, error) { return f.Infra().ListenService(f.Infra().Gateway) }, "127.243.17.1"},
	} {
		l, err := c.listen()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		host, port, err := net.SplitHostPort(l.Addr().String())
		testkit.ErrorContains(t, err, "")
		testkit.Equal(t, "host", host, c.host)
		if port == "80" || seen[l.Addr().String()] {
			t.Errorf("%s; want a port only it has", l.Addr())
		}
		seen[l.Addr().String()] = true
	}
}

func TestPortsAreClaimedUntilClose(t *testing.T) {
	t.Parallel()
	f := newHost(t)
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	p := Port{Number: ports[0]}
	a, b := attach(t, f, "a"), attach(t, f, "b")
	if err := a.Reserve(p, "first"); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if err := b.Reserve(p, "second"); !errors.As(err, &refused) || refused.Holder != "first" {
		t.Errorf("claimed twice: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := b.Reserve(p, "second"); err != nil {
		t.Error(err)
	}
}

// In a VPC a task's ports are only its own, and nothing is lost.
func TestVPCHasNothingToClaim(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{})
	for _, id := range []string{"a", "b"} {
		if err := attach(t, f, id).Reserve(Port{Number: 80}, id); err != nil {
			t.Error(err)
		}
	}
	if limitations := AWSVPC.Limitations(); limitations != nil {
		t.Errorf("limitations %q", limitations)
	}
	l, err := f.Infra().ListenService(f.Infra().Gateway)
	if err != nil || l.Addr().String() != "10.42.0.1:80" {
		t.Fatalf("%v, %v", l, err)
	}
	l.Close()
}

func TestHostNeedsLoopback(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{}) // skips where there are no namespaces
	ns, err := newNamespace(f.vpc.home, "down")
	if err != nil {
		t.Fatal(err)
	}
	down := &Namespace{vpc: f.vpc, ns: ns} // lo is not up yet
	defer down.ns.Close()
	err = down.Do(func() error {
		_, err := New(Options{Mode: Host, Subnet: "127.42.0.0/24"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "host networking needs the loopback interface, up and with all of 127.0.0.0/8: ") {
		t.Errorf("with loopback down: %v", err)
	}
}

func TestCloseDetachesPendingAttachments(t *testing.T) {
	t.Parallel()
	home := newFabric(t, Options{}).vpc.home
	attaching, proceed := make(chan struct{}), make(chan struct{})
	f := newFabric(t, Options{Namespace: func(owner, _ string) (*os.File, error) {
		if owner == "a" {
			close(attaching)
			<-proceed
		}
		return newNamespace(home, owner)
	}})
	result := make(chan *Namespace)
	go func() {
		n, err := f.Attach("a")
		if err != nil {
			t.Error(err)
		}
		result <- n
	}()
	<-attaching
	closed := make(chan error)
	go func() { closed <- f.Close() }()
	for refused := false; !refused; { // Close has started, and waits
		end, ok := f.changes.Begin()
		if ok {
			end()
		}
		refused = !ok
	}
	if _, err := f.Attach("b"); !errors.Is(err, errClosed) {
		t.Errorf("Attach after Close began: %v", err)
	}
	close(proceed)
	n := <-result
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := n.ns.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the namespace is open after Close: %v", err)
	}
}
