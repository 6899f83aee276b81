package subcommand

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// scaleServer is one of the Consul servers. bytes and open are of the connections of
// tasks to it.
type scaleServer struct {
	address, url string
	bytes, open  atomic.Int64
}

// start starts the servers, at addresses of loopback with the same ports as everywhere,
// and waits until each knows the leader.
func (s *scale) start(t testing.TB) {
	t.Helper()
	bin := testkit.RequireBinary(t, testkit.NewestConsul)
	ports, err := testkit.FreePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	s.port = ports[0]
	hcl := fmt.Sprintf(`server = true, bootstrap_expect = 3, log_level = "warn", retry_join = ["127.0.1.1:%[4]d"], retry_interval = "1s"
ports { http = %[1]d, grpc = %d, grpc_tls = -1, dns = -1, server = %d, serf_lan = %d, serf_wan = %d }
connect { enabled = true }
acl { enabled = true, default_policy = "deny", tokens { initial_management = %q, agent = %[6]q } }
# Servers write their network coordinates, tasks have none.
disable_coordinates = true
# The tasks have one address here.
limits { http_max_conns_per_client = 5000 }
telemetry { prometheus_retention_time = "24h", disable_hostname = true }
`, ports[0], ports[1], ports[2], ports[3], ports[4], testkit.ManagementToken)
	for i := range 3 {
		address := fmt.Sprintf("127.0.1.%d", i+1)
		dir := t.TempDir()
		file := filepath.Join(dir, "server.hcl")
		text := hcl + fmt.Sprintf("node_name = %q\nbind_addr = %q\nclient_addr = %[2]q\ndata_dir = %q\n",
			"server-"+address, address, filepath.Join(dir, "data"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bin, "agent", "-config-file="+file)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				text, _ := os.ReadFile(log.Name())
				t.Logf("server %s: %s", address, text[max(0, len(text)-2000):])
			}
			cmd.Process.Kill()
			cmd.Wait()
			log.Close()
		})
		s.servers = append(s.servers, &scaleServer{address: address, url: fmt.Sprintf("http://%s:%d", address, s.port)})
	}
	for _, server := range s.servers {
		testkit.Eventually(t, server.address+" knows its token and the leader", func() bool {
			text, err := server.get(t.Context(), "/v1/agent/self")
			return err == nil && strings.Contains(string(text), `"leader_addr": "127`) ||
				strings.Contains(string(text), `"leader_addr":"127`)
		})
	}
	if s.admin, err = consulutil.NewClient(consulutil.Options{Address: s.servers[0].url,
		Token: testkit.ManagementToken}); err != nil {
		t.Fatal(err)
	}
}

func (s *scale) addresses() []string {
	var all []string
	for _, server := range s.servers {
		all = append(all, server.address)
	}
	return all
}

// dial counts the connections to each server, and what they carry.
func (s *scale) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	for _, server := range s.servers {
		if strings.HasPrefix(address, server.address+":") {
			server.open.Add(1)
			return &countedConn{Conn: conn, server: server}, nil
		}
	}
	return conn, nil
}

type countedConn struct {
	net.Conn
	server *scaleServer
	closed sync.Once
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.server.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.server.open.Add(-1) })
	return c.Conn.Close()
}

func (s *scaleServer) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Consul-Token", testkit.ManagementToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// counts are a server's, since it has started.
type counts struct {
	http      map[string]float64 // by method and endpoint
	forwarded float64            // RPCs of other servers
	bytes     float64
	open      int64
}

// measured are the counts of the leader first, and then those of the followers, and the
// last index of their log.
type measured struct {
	servers []counts
	index   uint64
}

func (s *scale) measure(t testing.TB) measured {
	t.Helper()
	var m measured
	for _, server := range s.servers {
		var self struct {
			Stats struct{ Raft map[string]string }
		}
		text, err := server.get(t.Context(), "/v1/agent/self")
		if err == nil {
			err = json.Unmarshal(text, &self)
		}
		if err == nil {
			text, err = server.get(t.Context(), "/v1/agent/metrics?format=prometheus")
		}
		if err != nil {
			t.Fatal(err)
		}
		c := parseCounts(string(text))
		c.bytes, c.open = float64(server.bytes.Load()), server.open.Load()
		if self.Stats.Raft["state"] != "Leader" {
			m.servers = append(m.servers, c)
			continue
		}
		m.servers = append([]counts{c}, m.servers...)
		if m.index, err = strconv.ParseUint(self.Stats.Raft["last_log_index"], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if m.index == 0 {
		t.Fatal("there is no leader")
	}
	return m
}

// parseCounts reads the server's metrics, without the requests of measure.
func parseCounts(text string) counts {
	c := counts{http: map[string]float64{}}
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		name, value, _ := strings.Cut(scan.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		labels, isHTTP := strings.CutPrefix(name, "consul_api_http_count{")
		switch {
		case err != nil:
		case isHTTP && !strings.Contains(labels, "v1_agent_"):
			c.http[strings.NewReplacer(`method="`, "", `",path="v1_`, " ", `"}`, "").Replace(labels)] += n
		case name == "consul_rpc_request":
			c.forwarded = n
		}
	}
	return c
}

// cost is the difference of two measurements.
type cost struct {
	servers  []counts
	writes   uint64
	renewals float64
}

func (m measured) since(before measured) cost {
	c := cost{writes: m.index - before.index}
	for i, now := range m.servers {
		was := before.servers[i]
		d := counts{http: map[string]float64{}, forwarded: now.forwarded - was.forwarded, bytes: now.bytes - was.bytes,
			open: now.open}
		for endpoint, n := range now.http {
			if n -= was.http[endpoint]; n > 0 {
				d.http[endpoint] = n
			}
			if strings.Contains(endpoint, "session_renew") {
				c.renewals += n
			}
		}
		c.servers = append(c.servers, d)
	}
	return c
}

// report logs a table, and the requests of a task.
func (c cost) report(t testing.TB, phase string, tasks int, took time.Duration) cost {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tasks, %s, %d writes (%.2f a task)\n", phase, tasks, took.Round(time.Millisecond), c.writes,
		float64(c.writes)/float64(tasks))
	all := map[string]float64{}
	for i, s := range c.servers {
		role, requests := "leader", 0.0
		if i > 0 {
			role = "follower"
		}
		for endpoint, n := range s.http {
			requests += n
			all[endpoint] += n
		}
		fmt.Fprintf(&b, "  %-8s %8.0f requests, %8.0f RPCs of other servers, %10.0f bytes, %5d connections\n", role,
			requests, s.forwarded, s.bytes, s.open)
	}
	for endpoint, n := range all {
		fmt.Fprintf(&b, "  %8.3f a task: %s\n", n/float64(tasks), endpoint)
	}
	t.Log(b.String())
	return c
}
