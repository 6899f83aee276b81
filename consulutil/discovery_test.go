package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "discover")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "sh " + path
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh", "true", "echo")
	notExecutable := filepath.Join(t.TempDir(), "discover")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		hosts string
		want  []string
		err   string
		class retry.Class
	}{
		"IPv4": {"192.0.2.1", []string{"192.0.2.1"}, "", 0},
		"IPv6": {"2001:db8::1", []string{"2001:db8::1"}, "", 0},
		"name": {"consul.example.com", []string{"192.0.2.7", "2001:db8::7"}, "", 0},
		"unknown name": {
			"missing.example.com", nil,
			"consulServers.hosts: lookup missing.example.com: no such host", retry.NotYet,
		},
		"empty name": {
			"empty.example.com", nil,
			"consulServers.hosts: lookup empty.example.com: no address", retry.NotYet,
		},
		"command": {"exec=echo 192.0.2.1  192.0.2.2 192.0.2.1", []string{"192.0.2.1", "192.0.2.2"}, "", 0},
		"quotes, a zone": {"exec=" + script(t, `echo '"192.0.2.1" "fe80::1%eth0"'; echo "'2001:db8::1'"`),
			[]string{"192.0.2.1", "fe80::1%eth0", "2001:db8::1"}, "", 0},
		"arguments": {"exec=" + script(t, `test "$*" = "-q addrs provider=aws tag_key=\"a" && echo 192.0.2.3`) +
			` -q addrs provider=aws tag_key="a`, []string{"192.0.2.3"}, "", 0},
		"failure": {
			"exec=" + script(t, "echo no credentials >&2; exit 3"), nil,
			": exit status 3: no credentials", retry.NotYet,
		},
		"no address": {"exec=true", nil, "consulServers.hosts: output of true: there is no address", retry.NotYet},
		"other output": {
			"exec=echo 192.0.2.1 server-2", nil,
			`consulServers.hosts: output of echo: ParseAddr("server-2"): unable to parse IP`, retry.NotYet,
		},
		"no program": {
			"exec=/nonexistent/discover", nil,
			"no such file or directory: the container's image needs the program of exec=", retry.Permanent,
		},
		"not in PATH": {
			"exec=nonexistent-discover", nil,
			"the container's image needs the program of exec=", retry.Permanent,
		},
		"no permission": {
			"exec=" + notExecutable, nil,
			"permission denied: the container's image needs the program of exec=", retry.Permanent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServers(t, ServersOptions{Config: config.ConsulServers{Hosts: tt.hosts}})
			s.lookup = func(_ context.Context, network, host string) ([]netip.Addr, error) {
				if host == "empty.example.com" {
					return nil, nil
				}
				if network != "ip" || host != "consul.example.com" {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.7"), netip.MustParseAddr("2001:db8::7"),
					netip.MustParseAddr("192.0.2.7")}, nil
			}
			found, err := discover(t.Context(), s.config.Hosts, s.lookup)
			var got []string
			for _, a := range found {
				got = append(got, a.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if (err != nil) != (tt.err != "") ||
				err != nil && (!strings.HasSuffix(err.Error(), tt.err) || Classify(err) != tt.class) {
				t.Errorf("error %v (class %v), want %s (%v)", err, Classify(err), tt.err, tt.class)
			}
		})
	}
}

func TestRequestDoesNotWaitForDiscoveryAfterItsEnd(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	// The program's child keeps its output.
	s := newServers(t, ServersOptions{Config: config.ConsulServers{Hosts: "exec=" + script(t, "sleep 60; true")}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.GRPCAddresses(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "gave no addresses in time") {
		t.Errorf("got %v, want the end of the context", err)
	}
	if class := Classify(err); class != retry.NotYet {
		t.Errorf("class %v of: %v", class, err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %s", d)
	}
	if execLimit != 10*time.Second {
		t.Errorf("execLimit = %s", execLimit)
	}
}

// A process that the program leaves behind keeps its output.
func TestOutputOfAProgramThatLeavesAProcessCounts(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	s := newServers(t,
		ServersOptions{Config: config.ConsulServers{Hosts: "exec=" + script(t, "sleep 60 & echo 192.0.2.1")}})
	got, err := discover(t.Context(), s.config.Hosts, s.lookup)
	if want := []netip.Addr{netip.MustParseAddr("192.0.2.1")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// reapedRole discovers in a process whose children's status is lost, as in one that
// supervises other processes.
func reapedRole([]string) int {
	signal.Ignore(syscall.SIGCHLD)
	found, err := printedAddresses(context.Background(), []string{"echo", "192.0.2.1"})
	fmt.Println(found, err)
	_, err = printedAddresses(context.Background(), []string{"false"})
	fmt.Println(err)
	return 0
}

func TestDiscoveryWorksInAProcessThatReapsEveryChild(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("reaped")...)
	p.Expect("[192.0.2.1] <nil>")
	p.Expect("consulServers.hosts: output of false: there is no address")
}

func TestParsePeers(t *testing.T) {
	t.Parallel()
	got, err := parsePeers([]string{"10.0.0.1:8300", "[2001:db8::1]:8300", "10.0.0.1:8300"})
	want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, peers := range [][]string{nil, {"consul-1:8300"}} {
		if got, err := parsePeers(peers); err == nil {
			t.Errorf("%q: got %v, want an error", peers, got)
		}
	}
}
