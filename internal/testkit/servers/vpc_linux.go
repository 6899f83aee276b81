package servers

import (
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// VPC is a network of machines. It ends with the test.
type VPC struct {
	t      testing.TB // of NewVPC
	now    testing.TB // of Use
	fabric *network.Fabric
}

// NewVPC makes an empty VPC. Without the rights to make one, the test is skipped.
func NewVPC(t testing.TB) *VPC {
	t.Helper()
	fabric, err := network.New(network.Options{})
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	return &VPC{t: t, now: t, fabric: fabric}
}

// Use makes a subtest the one that fails, and that the processes of machines end with. Servers stay for
// the next one.
func (v *VPC) Use(t testing.TB) { v.now = t }

// Gateway returns the namespace between the machines, for services that no event hits.
func (v *VPC) Gateway() *network.Namespace { return v.fabric.Infra() }

// Host is a machine in a network namespace.
type Host struct {
	*network.Namespace
	vpc *VPC
}

// Host adds a machine. The name is for errors.
func (v *VPC) Host(name string) *Host {
	v.now.Helper()
	ns, err := v.fabric.Attach(name)
	if err != nil {
		v.now.Fatal(err)
	}
	return &Host{Namespace: ns, vpc: v}
}

// Run starts a program on the machine. It ends with the test, even if the test is killed.
func (h *Host) Run(o testkit.ProcessOptions, args ...string) *testkit.Process {
	return h.run(h.vpc.now, o, args...)
}

func (h *Host) run(t testing.TB, o testkit.ProcessOptions, args ...string) *testkit.Process {
	t.Helper()
	o.Thread = h.Do
	o.Sys = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return testkit.StartProcess(t, o, args...)
}

// Client returns a client that dials from the machine.
func (h *Host) Client() *http.Client {
	transport := &http.Transport{DialContext: h.DialContext, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: testkit.Patience}
}

// Drop drops all packets from and to the machine until restore is called.
func (h *Host) Drop() (restore func()) {
	h.vpc.now.Helper()
	return h.cut(h.link().CutFromAll)
}

// CutFrom drops the packets between the machine and others until restore is called.
func (h *Host) CutFrom(others ...*Host) (restore func()) {
	h.vpc.now.Helper()
	var all []func()
	for _, other := range others {
		all = append(all, h.cut(func() (func() error, error) { return h.link().CutFrom(other.link()) }))
	}
	return func() {
		for _, restore := range all {
			restore()
		}
	}
}

func (h *Host) link() *network.Task {
	h.vpc.now.Helper()
	link, err := h.Link()
	if err != nil {
		h.vpc.now.Fatal(err)
	}
	return link
}

func (h *Host) cut(begin func() (func() error, error)) (restore func()) {
	h.vpc.now.Helper()
	end, err := begin()
	if err != nil {
		h.vpc.now.Fatal(err)
	}
	return func() {
		h.vpc.now.Helper()
		if err := end(); err != nil {
			h.vpc.now.Fatal(err)
		}
	}
}
