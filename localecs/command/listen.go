package command

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// listenOrDelegate listens at addresses of the host's network. Where a user namespace is needed, a child in it has done
// the command's work: it inherits what this process listens at, since its network is another one.
func listenOrDelegate(inv *cli.Invocation, mode network.Mode, engine string, addresses []netip.AddrPort) (
	listeners []*net.TCPListener, done bool, err error) {
	if host.Inside() {
		if _, err := withoutRoot(inv, mode, engine, nil); err != nil {
			return nil, false, err
		}
		for _, f := range host.Inherited(len(addresses)) {
			l, err := net.FileListener(f)
			if err != nil {
				return nil, false, err
			}
			f.Close()
			listeners = append(listeners, l.(*net.TCPListener))
		}
		return listeners, false, nil
	}
	var errs []error
	var files []*os.File
	for _, a := range addresses {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(a))
		if err != nil {
			if op, ok := errors.AsType[*net.OpError](err); ok {
				err = op.Err // which does not repeat the address
			}
			if holder := network.Holder(a, err); holder != "" {
				err = fmt.Errorf("%w: %s has it", err, holder)
			}
			errs = append(errs, fmt.Errorf("listen at %s: %w", a, err))
			continue
		}
		listeners = append(listeners, l)
		f, err := l.File()
		errs = append(errs, err)
		files = append(files, f)
	}
	if err = errors.Join(errs...); err == nil {
		done, err = withoutRoot(inv, mode, engine, files)
	}
	for _, f := range files {
		f.Close()
	}
	if done || err != nil {
		closeListeners(listeners)
	}
	return listeners, done, err
}

func closeListeners(listeners []*net.TCPListener) {
	for _, l := range listeners {
		l.Close()
	}
}
