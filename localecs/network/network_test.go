package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	os.Exit(testkit.Main(m))
}

// newFabric makes a VPC for one test; it skips where the host cannot make one.
func newFabric(t *testing.T, o Options) *Fabric {
	t.Helper()
	f, err := New(o)
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func attach(t *testing.T, f *Fabric, id string) *Namespace {
	t.Helper()
	n, err := f.Attach(id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// serve answers every connection with word until the test ends.
func serve(t *testing.T, n *Namespace, address, word string) net.Listener {
	t.Helper()
	l, err := n.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	greet(t, l, word)
	return l
}

// greet answers every connection of a listener with word until the test ends.
func greet(t *testing.T, l net.Listener, word string) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			c.Close()
		}
	}()
}

// ask returns what the server at address says to a caller inside n.
func ask(n *Namespace, address string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	c, err := n.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}

func TestInterfacesOfATaskAreFargates(t *testing.T) {
	t.Parallel()
	n := attach(t, newFabric(t, Options{}), "a")
	var got []string
	err := n.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
			if err != nil {
				return err
			}
			for _, a := range addrs {
				got = append(got, l.Attrs().Name+" "+a.IPNet.String())
			}
			if l.Attrs().Flags&net.FlagUp == 0 {
				got = append(got, l.Attrs().Name+" is down")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"lo 127.0.0.1/8", "eth0 169.254.172.2/22", "eth1 10.42.0.4/24"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interfaces in kernel order (-want +got):\n%s", diff)
	}
	eni, err := net.ParseMAC("0a:ec:0a:2a:00:04")
	if err != nil || n.MAC.String() != eni.String() {
		t.Errorf("MAC %v, want %v", n.MAC, eni)
	}
}

func TestLoopbackIsSharedInATaskAndIsolatedBetweenTasks(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{})
	a, b := attach(t, f, "a"), attach(t, f, "b")
	serve(t, a, "127.0.0.1:9000", "a")
	if got, err := ask(a, "127.0.0.1:9000"); got != "a" || err != nil {
		t.Errorf("same task: %q, %v", got, err)
	}
	if _, err := a.Listen("tcp", "127.0.0.1:9000"); err == nil {
		t.Error("the same port was bound twice in one task")
	}
	if got, err := ask(b, "127.0.0.1:9000"); err == nil {
		t.Errorf("the other task reached it: %q", got)
	}
	serve(t, b, "127.0.0.1:9000", "b")
	if got, err := ask(b, "127.0.0.1:9000"); got != "b" || err != nil {
		t.Errorf("own port of the other task: %q, %v", got, err)
	}
}

func TestTasksReachEachOtherAndInfrastructureByIP(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{})
	a, b := attach(t, f, "a"), attach(t, f, "b")
	extra, err := f.AddInfraAddress()
	if err != nil {
		t.Fatal(err)
	}
	if extra.String() != "10.42.0.254" {
		t.Errorf("infrastructure address %s, want 10.42.0.254", extra)
	}
	serve(t, a, a.IP.String()+":8080", "task a")
	serve(t, f.Infra(), extra.String()+":8500", "consul")
	serve(t, f.Infra(), f.Infra().IP.String()+":8500", "gateway")
	for _, tc := range []struct {
		from *Namespace
		to   string
		want string
	}{
		{b, a.IP.String() + ":8080", "task a"},
		{f.Infra(), a.IP.String() + ":8080", "task a"},
		{b, "10.42.0.254:8500", "consul"},
		{a, "10.42.0.1:8500", "gateway"},
	} {
		if got, err := ask(tc.from, tc.to); got != tc.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", tc.to, got, err, tc.want)
		}
	}
}

func TestMetadataAddressIsTheTasksOwn(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{})
	a, b, mute := attach(t, f, "a"), attach(t, f, "b"), attach(t, f, "mute")
	for n, word := range map[*Namespace]string{a: "metadata of a", b: "metadata of b"} {
		l, err := n.ListenMetadata()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); got != "169.254.170.2:80" {
			t.Errorf("address %s", got)
		}
		greet(t, l, word)
		if _, err := n.ListenMetadata(); err == nil {
			t.Error("two listeners for one task's metadata")
		}
		// It is outside of the task: port 80 is for its application.
		serve(t, n, "0.0.0.0:80", "application")
		for address, want := range map[string]string{MetadataIP + ":80": word, "127.0.0.1:80": "application"} {
			if got, err := ask(n, address); got != want || err != nil {
				t.Errorf("%s: %q, %v; want %q", address, got, err, want)
			}
		}
	}
	for _, n := range []*Namespace{mute, f.Infra()} {
		if got, _ := ask(n, MetadataIP+":80"); got != "" {
			t.Errorf("%s received %q", n.IP, got)
		}
	}
}

func TestMetadataListenerCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	n := attach(t, newFabric(t, Options{}), "a")
	l, err := n.ListenMetadata()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	go func() { _, err := l.Accept(); accepted <- err }()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener: %v", err)
	}
	if got, _ := ask(n, MetadataIP+":80"); got != "" {
		t.Errorf("no listener, but the answer %q", got)
	}
	if l, err = n.ListenMetadata(); err != nil {
		t.Fatal(err)
	}
	greet(t, l, "again")
	if got, err := ask(n, MetadataIP+":80"); got != "again" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Instance metadata, and whatever else is not emulated.
func TestUnassignedAddressFailsAtOnce(t *testing.T) {
	t.Parallel()
	const neighbour = 3 * time.Second // after which one that does not answer is given up
	n := attach(t, newFabric(t, Options{}), "a")
	for _, address := range []string{"169.254.169.254:80", "169.254.169.253:53", "10.42.0.2:53", "198.51.100.1:443"} {
		// A machine that is busy for a moment is not so each time.
		quickest := testkit.Patience
		for range 5 {
			start := time.Now()
			if _, err := ask(n, address); err == nil {
				t.Errorf("%s answered", address)
			}
			if quickest = min(quickest, time.Since(start)); quickest < neighbour {
				break
			}
		}
		if quickest >= neighbour {
			t.Errorf("%s failed after %s at best, want less than %s", address, quickest, neighbour)
		}
	}
}

func TestNamesAreRefusedInsteadOfResolvedOutside(t *testing.T) {
	t.Parallel()
	n := attach(t, newFabric(t, Options{}), "a")
	if _, err := n.DialContext(t.Context(), "tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("dial: %v", err)
	}
	if _, err := n.Listen("tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("listen: %v", err)
	}
	c, err := n.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l, err := n.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestAddressIsFreeAtOnceAfterClose(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{Subnet: "10.42.0.0/28"}) // .4 to .14: eleven tasks
	for round := range 3 {
		var open []*Namespace
		for i := range 11 {
			open = append(open, attach(t, f, fmt.Sprint("task-", i)))
		}
		if _, err := f.Attach("one-more"); !errors.Is(err, shapes.ErrNoAddress) {
			t.Errorf("round %d: twelfth task: %v", round, err)
		}
		word := fmt.Sprint("round ", round)
		l := serve(t, open[3], open[3].IP.String()+":80", word)
		if got, err := ask(open[7], l.Addr().String()); got != word || err != nil {
			t.Errorf("round %d: %q, %v", round, got, err)
		}
		// The listener stays open on purpose: a socket keeps the namespace, and must not keep the address.
		for _, n := range open {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
			if err := n.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		}
	}
}

func TestClosedNamespaceIsNotEntered(t *testing.T) {
	t.Parallel()
	n := attach(t, newFabric(t, Options{}), "a")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.Do(func() error { return nil }); err == nil {
		t.Error("entered a closed namespace")
	}
}

func TestClosedFabricRefuses(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Attach("a"); !errors.Is(err, errClosed) {
		t.Errorf("Attach: %v", err)
	}
	if _, err := f.AddInfraAddress(); !errors.Is(err, errClosed) {
		t.Errorf("AddInfraAddress: %v", err)
	}
}

// After Do the process is where it was: a dirty thread would show up as a
// second network namespace among the process's threads.
func TestThreadsReturnToTheirNamespace(t *testing.T) {
	n := attach(t, newFabric(t, Options{}), "a")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := n.Do(func() error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	failed := errors.New("failed inside")
	if err := n.Do(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error of the function: %v", err)
	}
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(threads) == 0 {
		t.Fatal("no threads found", err)
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if ns, err := os.Readlink(path); err == nil && ns != home {
			t.Errorf("%s is in %s, want %s", path, ns, home)
		}
	}
}
