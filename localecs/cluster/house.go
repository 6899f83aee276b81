package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// House is a cluster's network, as visitors see it.
type House struct {
	fabric *network.Fabric
	// domain is where short names are looked for, dir where files of visitors are.
	domain, dir string

	// leaving is closed by Close.
	leaving  chan struct{}
	visitors Gate
}

// NewHouse is the house of a network. Names without a domain are those of domain; dir
// is for files.
func NewHouse(fabric *network.Fabric, domain, dir string) *House {
	return &House{fabric: fabric, domain: domain, dir: dir, leaving: make(chan struct{})}
}

// Visit runs a program in the network, with an address of its own, and waits for its
// end, as Run does. It is killed by Close, too.
func (h *House) Visit(ctx context.Context, v Visitor) (code int, err error) {
	leave, err := h.visitors.Enter()
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-h.leaving:
		case <-ctx.Done():
		}
	}()
	id := "visitor-" + rand.Text()
	ns, err := h.fabric.Attach(id)
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer ns.Close()
	temp := filepath.Join(h.dir, id)
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return runtime.CodeFailed, fmt.Errorf("make a directory for the names: %w", err)
	}
	defer os.RemoveAll(temp)
	names := fmt.Sprintf("nameserver %s\nsearch %s %s\noptions timeout:2 attempts:2\n", ns.Resolver, h.domain, ns.SearchDomain)
	return Run(ctx, v, Place{Network: ns.File(), Names: ResolverFiles(names), Temp: temp})
}

// Close kills all visitors and waits until they have gone. It is called once.
func (h *House) Close() {
	wait := h.visitors.Close()
	close(h.leaving)
	wait()
}
