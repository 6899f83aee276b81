package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Ports of every server, for a task's configuration.
const (
	HTTPPort = 8500
	GRPCPort = 8502
)

// Cluster is real Consul servers with ACLs, each on its own machine.
type Cluster struct {
	// Servers are those that were not replaced.
	Servers []*Server

	vpc     *VPC
	program string
	started int
}

// Server is one of them.
type Server struct {
	*Host
	// Admin is a client with the management token.
	Admin *api.Client

	cluster *Cluster
	dir     string
	process *testkit.Process
}

// Start starts n servers of the program, a name for testkit.RequireBinary, and waits for their leader.
func (v *VPC) Start(n int, program string) *Cluster {
	v.now.Helper()
	c := &Cluster{vpc: v, program: testkit.RequireBinary(v.now, program)}
	for range n {
		c.add()
	}
	c.run(c.Servers)
	c.settle()
	return c
}

// Join starts n more servers, and waits until they vote.
func (c *Cluster) Join(n int) []*Server {
	c.vpc.now.Helper()
	before := len(c.Servers)
	for range n {
		c.add()
	}
	c.run(c.Servers[before:])
	c.settle()
	return c.Servers[before:]
}

// Addresses returns the servers' addresses.
func (c *Cluster) Addresses() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.IP.String())
	}
	return all
}

// Leader returns the server that leads.
func (c *Cluster) Leader() *Server {
	c.vpc.now.Helper()
	var leader *Server
	testkit.Eventually(c.vpc.now, "there is a leader", func() bool {
		for _, s := range c.Servers {
			// The others may not know yet that a leader is gone.
			address, err := s.Admin.Status().Leader()
			if err == nil && strings.HasPrefix(address, s.IP.String()+":") {
				leader = s
				return true
			}
		}
		return false
	})
	return leader
}

// Follower returns a server that does not lead.
func (c *Cluster) Follower() *Server {
	c.vpc.now.Helper()
	leader := c.Leader()
	return c.Servers[slices.IndexFunc(c.Servers, func(s *Server) bool { return s != leader })]
}

// Others returns the servers but this one.
func (s *Server) Others() []*Server {
	return slices.DeleteFunc(slices.Clone(s.cluster.Servers), func(other *Server) bool { return other == s })
}

// Isolate drops the packets between the server and the others until heal is called, which waits until all
// are one cluster again. Clients reach the server.
func (s *Server) Isolate() (heal func()) {
	s.vpc.now.Helper()
	var others []*Host
	for _, other := range s.Others() {
		others = append(others, other.Host)
	}
	restore := s.CutFrom(others...)
	return func() {
		s.vpc.now.Helper()
		restore()
		// By themselves servers look for those that failed every 30 s.
		if err := s.Admin.Agent().Join(others[0].IP.String(), false); err != nil {
			s.vpc.now.Fatal(err)
		}
		s.cluster.settle()
	}
}

// Pause stops the process: it takes connections and answers nothing.
func (s *Server) Pause() { s.process.Signal(syscall.SIGSTOP) }

// Resume continues it.
func (s *Server) Resume() { s.process.Signal(syscall.SIGCONT) }

// Kill ends the process. Its machine refuses connections.
func (s *Server) Kill() {
	s.vpc.now.Helper()
	s.process.Signal(syscall.SIGKILL)
	s.process.Wait()
}

// Restart starts a killed server with its data, and waits until it serves.
func (s *Server) Restart() {
	s.vpc.now.Helper()
	s.cluster.run([]*Server{s})
	s.cluster.settle()
}

// Leave lets the server leave the cluster and end.
func (s *Server) Leave() {
	s.vpc.now.Helper()
	if err := s.Admin.Agent().Leave(); err != nil {
		s.vpc.now.Fatal(err)
	}
	s.process.Wait()
	c := s.cluster
	c.Servers = slices.DeleteFunc(c.Servers, func(other *Server) bool { return other == s })
	c.settle()
}

// add makes the next server's machine.
func (c *Cluster) add() {
	t := c.vpc.now
	t.Helper()
	c.started++
	s := &Server{Host: c.vpc.Host(fmt.Sprintf("server-%d", c.started)), cluster: c, dir: c.vpc.t.TempDir()}
	var err error
	s.Admin, err = consulutil.NewClient(consulutil.Options{
		Address: fmt.Sprintf("%s:%d", s.IP, HTTPPort), Token: testkit.ManagementToken, DialContext: s.DialContext,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Servers = append(c.Servers, s)
}

// run starts the processes of servers, which join all that there are.
func (c *Cluster) run(servers []*Server) {
	c.vpc.now.Helper()
	join := fmt.Sprintf("%q", c.Addresses())
	join = strings.ReplaceAll(join, " ", ", ")
	for _, s := range servers {
		expect := ""
		if len(servers) == len(c.Servers) {
			expect = fmt.Sprintf("bootstrap_expect = %d", len(servers))
		}
		config := fmt.Sprintf(`server = true
%s
node_name = "server-%[2]s"
bind_addr = %[2]q
client_addr = "0.0.0.0"
data_dir = %[3]q
retry_join = %[4]s
retry_interval = "1s"
log_level = "info"
disable_update_check = true
ports { http = %[5]d, grpc = %[6]d, grpc_tls = -1, dns = -1, serf_wan = -1 }
connect { enabled = true }
performance { raft_multiplier = 1 }
# Servers that were all paused suspect each other when they continue, and stay voters.
autopilot { server_stabilization_time = "1s", cleanup_dead_servers = false }
acl { enabled = true, default_policy = "deny", tokens { initial_management = %[7]q, agent = %[7]q } }
`, expect, s.IP, filepath.Join(s.dir, "data"), join, HTTPPort, GRPCPort, testkit.ManagementToken)
		file := filepath.Join(s.dir, "server.hcl")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			s.vpc.now.Fatal(err)
		}
		// The log is a file: a server must not wait for a reader of its output.
		s.process = s.run(s.vpc.t, testkit.ProcessOptions{}, "/bin/sh", "-c",
			`exec "$0" agent -config-file "$1" >>"$2" 2>&1`,
			c.program, file, s.log())
		logTail(s.vpc.t, s.log())
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// settle waits until all servers vote and know the leader.
func (c *Cluster) settle() {
	c.vpc.now.Helper()
	for _, s := range c.Servers {
		testkit.Eventually(c.vpc.now, s.IP.String()+" knows that all servers vote, and its token", func() bool {
			configuration, err := s.Admin.Operator().RaftGetConfiguration(nil)
			if err != nil || len(configuration.Servers) != len(c.Servers) {
				return false
			}
			for _, peer := range configuration.Servers {
				if !peer.Voter {
					return false
				}
			}
			return true
		})
	}
}

// logTail shows the end of a file when the test fails.
func logTail(t testing.TB, path string) {
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(path)
			t.Logf("%s: %s", path, text[max(0, len(text)-2000):])
		}
	})
}
