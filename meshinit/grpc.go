package meshinit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/workload"
)

// GRPC is the agent's xDS address in the words of `consul connect envoy`.
type GRPC struct {
	// Address is host:port with or without http:// or https://, or
	// unix:///path (CONSUL_GRPC_ADDR); the agent of the task when empty.
	Address string
	// CAFile and CAPath hold the CA certificates for https and, when set, for
	// a unix socket (CONSUL_GRPC_CACERT, CONSUL_GRPC_CAPATH).
	CAFile, CAPath string
	// HTTPCAFile and HTTPCAPath take their place for https only
	// (CONSUL_CACERT, CONSUL_CAPATH).
	HTTPCAFile, HTTPCAPath string
}

const unixScheme = "unix://"

// check refuses an address that no bootstrap can hold. It does no I/O.
func (g GRPC) check() error {
	_, _, _, err := split(g.address())
	return err
}

// split returns the parts of an address; host and port are empty for a unix socket.
func split(address string) (scheme, host, port string, err error) {
	for _, s := range []string{unixScheme, "https://", "http://"} {
		if strings.HasPrefix(address, s) {
			scheme = s
		}
	}
	rest := address[len(scheme):]
	if scheme == unixScheme && rest != "" {
		return scheme, "", "", nil
	}
	host, port, err = net.SplitHostPort(rest)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || strings.ContainsAny(host, "/@") || numberErr != nil || number == 0 {
		return "", "", "",
			fmt.Errorf(
				"gRPC address %q (CONSUL_GRPC_ADDR): want <host>:<port>, with or without http:// or https://, or "+
					"unix:///<path>", address)
	}
	return scheme, host, port, nil
}

func (g GRPC) address() string {
	return cmp.Or(g.Address, net.JoinHostPort("localhost", strconv.Itoa(workload.AgentGRPCPort)))
}

// resolve turns the address into what a bootstrap can hold: Envoy gets an IP
// address and the CA's text.
func (g GRPC) resolve(ctx context.Context) (bootstrap.GRPC, error) {
	address := g.address()
	file, path := g.CAFile, g.CAPath
	if strings.HasPrefix(address, "https://") {
		file, path = cmp.Or(file, g.HTTPCAFile), cmp.Or(path, g.HTTPCAPath)
	} else if !strings.HasPrefix(address, unixScheme) {
		file, path = "", ""
	}
	pem, err := loadCA(file, path)
	if err != nil {
		return bootstrap.GRPC{}, fmt.Errorf("CA of the gRPC address %q (CONSUL_GRPC_CACERT, CONSUL_GRPC_CAPATH): %w",
			address, err)
	}
	resolved, err := resolveHost(ctx, address)
	if err != nil {
		return bootstrap.GRPC{}, fmt.Errorf("gRPC address %q (CONSUL_GRPC_ADDR): %w", address, err)
	}
	return bootstrap.GRPC{Address: resolved, CAPEM: pem}, nil
}

// loadCA returns the content of file or, without one, of all files in dir.
func loadCA(file, dir string) (string, error) {
	files := []string{file}
	if file == "" {
		if dir == "" {
			return "", nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		files = nil
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	var pem strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		pem.WriteString(strings.TrimSpace(string(data)) + "\n")
	}
	return pem.String(), nil
}

// resolveHost replaces a host name by its address, IPv4 if it has one. Generate
// refuses an address that cannot be split.
func resolveHost(ctx context.Context, address string) (string, error) {
	scheme, host, port, err := split(address)
	if scheme == unixScheme || err != nil || host == "localhost" || net.ParseIP(host) != nil {
		return address, nil
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	if len(ips) == 0 {
		return "", errors.New("no address for " + host)
	}
	best := ips[0]
	if i := slices.IndexFunc(ips, func(ip net.IP) bool { return ip.To4() != nil }); i >= 0 {
		best = ips[i]
	}
	return scheme + net.JoinHostPort(best.String(), port), nil
}
