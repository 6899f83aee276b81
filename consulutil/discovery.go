package consulutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// execLimit bounds the command of consulServers.hosts. A request that needs its
// addresses has less when its own time ends before.
const execLimit = 10 * time.Second

// outputDelay is how long output is awaited after the command's exit: a process that the
// command left behind may hold it.
const outputDelay = 3 * time.Second

// execCommand is the command of a hosts value with exec=. Blanks separate its words,
// and nothing quotes them.
func execCommand(hosts string) (args []string, ok bool) {
	command, ok := strings.CutPrefix(hosts, "exec=")
	return strings.Fields(command), ok
}

// discover returns the addresses that consulServers.hosts stands for, each once.
func (s *Servers) discover(ctx context.Context) ([]netip.Addr, error) {
	hosts := s.config.Hosts
	if args, ok := execCommand(hosts); ok {
		return printedAddresses(ctx, args)
	}
	if a, err := netip.ParseAddr(hosts); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := s.lookup(ctx, "ip", hosts)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("lookup %s: no address", hosts)
	}
	if err != nil {
		return nil, &classed{fmt.Errorf("consulServers.hosts: %w", err), retry.Unreachable}
	}
	return distinct(found), nil
}

// printedAddresses runs a command that prints IP addresses.
func printedAddresses(ctx context.Context, args []string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = outputDelay
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, syscall.ECHILD):
		// A process that supervises others takes the status of every child; then the
		// output alone counts.
	case ctx.Err() != nil:
		return nil, fmt.Errorf("consulServers.hosts: %s did not exit in time: %w", args[0], ctx.Err())
	case errors.Is(err, exec.ErrWaitDelay):
		// Its output before the exit is used.
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, usage("consulServers.hosts: %w: the container's image needs the program of exec=", err)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("consulServers.hosts: %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	default:
		return nil, fmt.Errorf("consulServers.hosts: %s: %w", args[0], err)
	}
	addresses, err := parseAddresses(string(out))
	if err != nil {
		return nil, fmt.Errorf("consulServers.hosts: output of %s: %w", args[0], err)
	}
	return addresses, nil
}

// parseAddresses reads IP addresses between blanks, each with or without quotes.
func parseAddresses(text string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, word := range strings.Fields(text) {
		a, err := netip.ParseAddr(strings.Trim(word, `"'`))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no address")
	}
	return distinct(all), nil
}

// parsePeers returns the addresses of the answer of /v1/status/peers, which has the
// ports of another protocol.
func parsePeers(peers []string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, p := range peers {
		a, err := netip.ParseAddrPort(p)
		if err != nil {
			return nil, fmt.Errorf("peers of the Consul servers: %w", err)
		}
		all = append(all, a.Addr())
	}
	if len(all) == 0 {
		return nil, errors.New("peers of the Consul servers: there are none")
	}
	return distinct(all), nil
}

// distinct returns each address once, an IPv4 address in its usual form.
func distinct(all []netip.Addr) []netip.Addr {
	var once []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); !slices.Contains(once, a) {
			once = append(once, a)
		}
	}
	return once
}
