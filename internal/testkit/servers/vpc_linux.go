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
	t      testing.TB
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
	return &VPC{t: t, fabric: fabric}
}

// Gateway returns the namespace between the machines, for services that no event hits.
func (v *VPC) Gateway() *network.Namespace { return v.fabric.Infra() }

// Host is a machine in a network namespace.
type Host struct {
	*network.Namespace
	t testing.TB
}

// Host adds a machine. The name is for errors.
func (v *VPC) Host(name string) *Host {
	v.t.Helper()
	ns, err := v.fabric.Attach(name)
	if err != nil {
		v.t.Fatal(err)
	}
	return &Host{Namespace: ns, t: v.t}
}

// Run starts a program on the machine. It ends with the test, even if the test is killed.
func (h *Host) Run(o testkit.ProcessOptions, args ...string) *testkit.Process {
	h.t.Helper()
	o.Thread = h.Do
	o.Sys = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return testkit.StartProcess(h.t, o, args...)
}

// Client returns a client that dials from the machine.
func (h *Host) Client() *http.Client {
	transport := &http.Transport{DialContext: h.DialContext, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: testkit.Patience}
}

// Drop drops all packets from and to the machine until restore is called.
func (h *Host) Drop() (restore func()) {
	h.t.Helper()
	return h.cut(h.link().CutFromAll)
}

// CutFrom drops the packets between the machine and others until restore is called.
func (h *Host) CutFrom(others ...*Host) (restore func()) {
	h.t.Helper()
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
	h.t.Helper()
	link, err := h.Link()
	if err != nil {
		h.t.Fatal(err)
	}
	return link
}

func (h *Host) cut(begin func() (func() error, error)) (restore func()) {
	h.t.Helper()
	end, err := begin()
	if err != nil {
		h.t.Fatal(err)
	}
	return func() {
		h.t.Helper()
		if err := end(); err != nil {
			h.t.Fatal(err)
		}
	}
}
