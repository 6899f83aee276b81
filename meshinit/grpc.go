package meshinit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/bootstrap"
)

// DefaultGRPC is where a client agent in the same task serves xDS.
const DefaultGRPC = "localhost:8502"

// GRPC is the agent's xDS address in the words of `consul connect envoy`.
type GRPC struct {
	// Address is host:port with or without http:// or https://, or
	// unix:///path (CONSUL_GRPC_ADDR); DefaultGRPC when empty.
	Address string
	// CAFile and CAPath hold the CA certificates for https and, when set, for
	// a unix socket (CONSUL_GRPC_CACERT, CONSUL_GRPC_CAPATH).
	CAFile, CAPath string
	// HTTPCAFile and HTTPCAPath take their place for https only
	// (CONSUL_CACERT, CONSUL_CAPATH).
	HTTPCAFile, HTTPCAPath string
}

// check refuses an address that no bootstrap can hold. It does no I/O.
func (g GRPC) check() error {
	address := g.address()
	if path, ok := strings.CutPrefix(address, "unix://"); ok && path != "" {
		return nil
	}
	hostPort, _ := strings.CutPrefix(address, "https://")
	host, port, err := net.SplitHostPort(strings.TrimPrefix(hostPort, "http://"))
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || strings.ContainsAny(host, "/@") || numberErr != nil || number == 0 {
		return fmt.Errorf("gRPC address %q (CONSUL_GRPC_ADDR): want <host>:<port>, with or without http:// or https://, or unix:///<path>", address)
	}
	return nil
}

func (g GRPC) address() string { return cmp.Or(g.Address, DefaultGRPC) }

// resolve turns the address into what a bootstrap can hold: Envoy gets an IP
// address and the CA's text.
func (g GRPC) resolve(ctx context.Context) (bootstrap.GRPC, error) {
	address := g.address()
	file, path := g.CAFile, g.CAPath
	if strings.HasPrefix(address, "https://") {
		if file == "" {
			file = g.HTTPCAFile
		}
		if path == "" {
			path = g.HTTPCAPath
		}
	} else if !strings.HasPrefix(address, "unix://") {
		file, path = "", ""
	}
	pem, err := loadCA(file, path)
	if err != nil {
		return bootstrap.GRPC{}, fmt.Errorf("CA of the gRPC address %q (CONSUL_GRPC_CACERT, CONSUL_GRPC_CAPATH): %w", address, err)
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

// resolveHost replaces a host name by its address, IPv4 if it has one. What
// cannot be split stays for the bootstrap to complain about.
func resolveHost(ctx context.Context, address string) (string, error) {
	scheme, hostPort := "", address
	if i := strings.Index(address, "://"); i >= 0 {
		scheme, hostPort = address[:i+3], address[i+3:]
	}
	host, port, err := net.SplitHostPort(hostPort)
	if scheme == "unix://" || err != nil || host == "localhost" || net.ParseIP(host) != nil {
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
	for _, ip := range ips {
		if ip.To4() != nil {
			best = ip
			break
		}
	}
	return scheme + net.JoinHostPort(best.String(), port), nil
}
