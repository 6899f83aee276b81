package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// endpoints are what every task of a cluster can ask: STS, IAM, the ECS API and the name server.
type endpoints struct {
	account shapes.Account
	store   *iam.Store
	faults  *Faults
	infra   *network.Namespace
	// ecs is the ECS API, where there is one.
	ecs atomic.Pointer[http.Handler]
	// aws is the address of STS and IAM in URLs, and awsHosts are AWS's own names of them;
	// none with host networking. trust is a directory with the certificate of their CA.
	aws      string
	awsHosts []string
	trust    string
	closers  []func() error
}

// handler answers for STS, IAM, and the ECS API once there is one.
func (e *endpoints) handler() http.Handler {
	identities := iam.New(e.store, e.account.Region)
	return e.faults.AWS(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api := e.ecs.Load(); api != nil && controlplane.IsECSRequest(r) {
			(*api).ServeHTTP(w, r)
			return
		}
		identities.ServeHTTP(w, r)
	}))
}

func (e *endpoints) serveAWS() error {
	l, err := e.infra.ListenService(e.infra.Gateway)
	if err != nil {
		return fmt.Errorf("listen for STS and IAM: %w", err)
	}
	e.aws = metadata.Host(l)
	e.closers = append(e.closers, metadata.Serve(l, e.handler()))
	return nil
}

// serveECS adds the ECS API to the handler.
func (e *endpoints) serveECS(api http.Handler) { e.ecs.Store(&api) }

// serveHTTPS answers at AWS's own names, for programs that know no endpoint variable. It writes the
// certificate of the CA, which is the run's own, into dir. The CA's key is not stored.
func (e *endpoints) serveHTTPS(dir string) error {
	hosts := e.account.Hosts()
	certificate, ca, err := NewCertificate(hosts)
	if err != nil {
		return fmt.Errorf("make the certificate of STS and IAM: %w", err)
	}
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, filepath.Base(trustFile)), ca, 0o644))
	if err != nil {
		return fmt.Errorf("write the certificate of STS and IAM: %w", err)
	}
	l, err := e.infra.Listen("tcp", net.JoinHostPort(e.infra.Gateway.String(), "443"))
	if err != nil {
		return fmt.Errorf("listen for STS and IAM: %w", err)
	}
	l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
	e.closers = append(e.closers, metadata.Serve(l, e.handler()))
	e.awsHosts, e.trust = hosts, dir
	return nil
}

func (e *endpoints) serveDNS(resolve func(name string) (addresses []netip.Addr, exists bool)) error {
	address := net.JoinHostPort(e.infra.Resolver.String(), "53")
	packets, err := e.infra.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("listen for DNS: %w", err)
	}
	streams, err := e.infra.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for DNS: %w", err), packets.Close())
	}
	e.closers = append(e.closers, network.NewNameServer(resolve, packets, streams).Close)
	return nil
}

func (e *endpoints) close() error {
	var errs []error
	for _, closer := range e.closers {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
