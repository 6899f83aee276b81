// Package testkit is what tests share: real Consul and Envoy, golden files, a
// re-executed child, and the import test.
//
// Owns: starting and stopping the servers it started.
// Never does: skip silently. A missing program fails the test when CI=true and
// skips with a loud line otherwise.
// Start reading at: StartConsul.
package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ManagementToken is the bootstrap token of every ACL server of StartConsul.
const ManagementToken = "e2f0a1c4-0000-4000-8000-000000000001"

// NewestConsul is the newest version that is tested, by the name of its program, which
// tools/ensure.sh consul-1.22 builds.
const NewestConsul = "consul-1.22.2"

// Consul is a running development server that also serves as an agent.
type Consul struct {
	// HTTPAddr and GRPCAddr are host:port on loopback.
	HTTPAddr, GRPCAddr string
	// GRPCTLSAddr is the TLS port of gRPC; ConsulOptions.HCL configures its
	// certificate.
	GRPCTLSAddr string
	// Token is ManagementToken with ACLs, else empty.
	Token string
	// Dir holds its log (consul.log) and whatever the test puts there.
	Dir string

	wan  int // serf's port towards other datacenters
	cmd  *exec.Cmd
	done chan struct{}
}

// ConsulOptions vary a server.
type ConsulOptions struct {
	// ACL turns ACLs on with default deny and ManagementToken.
	ACL bool
	// HCL is further agent configuration.
	HCL string
	// Newest starts NewestConsul, for tests of the long lane.
	Newest bool
	// IPv6 binds everything to ::1.
	IPv6 bool
	// Primary makes the server datacenter dc2 of a federation whose primary
	// datacenter is this server's, with ACL replication. Both need ACL.
	Primary *Consul
}

// Main runs a package's tests around stop, for TestMain: it returns the exit
// code after the servers are stopped.
func Main(m *testing.M, stop ...func()) int {
	defer func() {
		for _, s := range stop {
			s()
		}
	}()
	return m.Run()
}

// Servers starts the two servers that most packages need: one with ACLs, one
// without. It ends the process when one cannot be started. For TestMain.
func Servers() (secured, open *Consul) {
	secured, err := StartConsul(ConsulOptions{ACL: true})
	if err == nil {
		open, err = StartConsul(ConsulOptions{})
	}
	if err != nil {
		secured.Stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return secured, open
}

// Binary returns the path of consul or envoy: <NAME>_BIN, then the project's
// .tools/bin, then PATH. It is empty when there is none.
func Binary(name string) string {
	if p := os.Getenv(strings.ToUpper(name) + "_BIN"); p != "" {
		return p
	}
	if p := filepath.Join(Root(), ".tools", "bin", name); isFile(p) {
		return p
	}
	p, _ := exec.LookPath(name)
	return p
}

// RequireBinary does what Binary does for a test that cannot run without it. NewestConsul is in the long lane only.
func RequireBinary(t testing.TB, name string) string {
	t.Helper()
	if name == NewestConsul {
		Long(t)
	}
	p := Binary(name)
	if p == "" {
		Missing(t, name+" not found; run 'make tools'")
	}
	return p
}

// RequireOnPath skips a test that runs programs of this machine when one of them is missing.
func RequireOnPath(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Missing(t, err.Error())
		}
	}
}

// Missing fails the test when CI=true and skips it loudly otherwise.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED, NOT PROVEN: " + why)
}

// Long skips a test that make test-full runs and make test, with -short, does not.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-full runs it")
	}
}

// Share returns how many of n random cases a test tries: a fifth in the short lane.
func Share(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// Root returns the project's root directory: the first one above the working
// directory whose go.mod is the project's. The answer of the first call stays,
// whatever directory a test changes to.
func Root() string { return root() }

var root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/meshtask/consul-ecs\n") {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("the working directory is not in the project")
		}
		dir = parent
	}
})

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// StartConsul starts a server on free loopback ports and waits until it has a
// leader and answers KV reads. A missing binary gives (nil, nil): tests call
// (*Consul).Require, which skips or fails.
func StartConsul(o ConsulOptions) (*Consul, error) {
	bin := Binary("consul")
	if o.Newest {
		if testing.Short() {
			return nil, fmt.Errorf("%s is in the long lane only: call testkit.Long first", NewestConsul)
		}
		bin = Binary(NewestConsul)
	}
	if bin == "" {
		return nil, nil
	}
	var last error
	for range 3 { // a free port may be taken between finding and binding it
		c, err := startConsul(bin, o)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, last
}

func startConsul(bin string, o ConsulOptions) (*Consul, error) {
	dir, err := os.MkdirTemp("", "consul-test-")
	if err != nil {
		return nil, err
	}
	p, err := FreePorts(6)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if o.IPv6 {
		host = "::1"
	}
	at := func(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	c := &Consul{
		HTTPAddr:    at(p[0]),
		GRPCAddr:    at(p[1]),
		GRPCTLSAddr: at(p[2]),
		Dir:         dir,
		wan:         p[5],
		done:        make(chan struct{}),
	}
	file := filepath.Join(dir, "agent.hcl")
	if err := os.WriteFile(file, []byte(o.hcl(p)), 0o600); err != nil {
		return nil, err
	}
	logFile, err := os.Create(filepath.Join(dir, "consul.log"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	if o.ACL {
		c.Token = ManagementToken
	}
	c.cmd = exec.Command(bin, "agent", "-dev", "-log-level=warn", "-config-file="+file)
	c.cmd.Stdout, c.cmd.Stderr = logFile, logFile
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.cmd.Wait()
		close(c.done)
	}()
	if err := c.waitReady(); err != nil {
		c.Stop()
		return nil, fmt.Errorf("%w; log: %s", err, c.Log())
	}
	return c, nil
}

// hcl returns the agent's configuration with those ports.
func (o ConsulOptions) hcl(ports []int) string {
	hcl := fmt.Sprintf("ports { http = %d grpc = %d dns = -1 grpc_tls = %d server = %d serf_lan = %d serf_wan = %d }\n",
		ports[0], ports[1], ports[2], ports[3], ports[4], ports[5])
	if o.IPv6 {
		hcl += `bind_addr = "::1" client_addr = "::1"` + "\n"
	}
	replication := ""
	if o.Primary != nil {
		replication = ManagementToken
		hcl += fmt.Sprintf("datacenter = \"dc2\" primary_datacenter = \"dc1\" retry_join_wan = [\"127.0.0.1:%d\"]\n",
			o.Primary.wan)
	}
	if o.ACL {
		hcl += fmt.Sprintf("acl { enabled = true default_policy = \"deny\" enable_token_replication = %v\n"+
			"tokens { initial_management = %q agent = %q replication = %q } }\n",
			o.Primary != nil, ManagementToken, ManagementToken, replication)
	}
	return hcl + o.HCL
}

func (c *Consul) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.HTTPAddr+"/v1/kv/?keys", nil)
		req.Header.Set("X-Consul-Token", c.Token)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			// 404: no keys yet, but the leader answered.
			if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-c.done:
			return fmt.Errorf("consul ended at start")
		case <-ctx.Done():
			return fmt.Errorf("consul was not ready in %s", Patience)
		case <-tick.C:
		}
	}
}

// Require skips or fails the test when the server could not be started for
// want of a binary, and returns it otherwise.
func (c *Consul) Require(t testing.TB) *Consul {
	t.Helper()
	if c == nil {
		Missing(t, "consul not found; run 'make tools', and for "+NewestConsul+" 'tools/ensure.sh consul-1.22'")
	}
	return c
}

// UniqueCluster returns the ARN of a cluster whose lock no earlier run has delayed.
func UniqueCluster(t testing.TB) string {
	return fmt.Sprintf("arn:aws:ecs:us-west-2:111122223333:cluster/%s-%d", strings.ReplaceAll(t.Name(), "/", "-"),
		time.Now().UnixNano())
}

// Since reports whether the server is of that version or a later one: CONSUL_BIN may name
// any.
func (c *Consul) Since(t testing.TB, major, minor int) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.HTTPAddr+"/v1/agent/self", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", c.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var self struct{ Config struct{ Version string } }
	if err := json.NewDecoder(resp.Body).Decode(&self); err != nil {
		t.Fatal(err)
	}
	var have [2]int
	if _, err := fmt.Sscanf(self.Config.Version, "%d.%d.", &have[0], &have[1]); err != nil {
		t.Fatalf("version %q: %v", self.Config.Version, err)
	}
	return slices.Compare(have[:], []int{major, minor}) >= 0
}

// Log returns what the server has logged.
func (c *Consul) Log() string {
	b, _ := os.ReadFile(filepath.Join(c.Dir, "consul.log"))
	return string(b)
}

// Freeze stops the server's process: it takes connections and answers nothing.
// Stop ends it anyway.
func (c *Consul) Freeze(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// Stop kills the server and removes its directory. It is safe on nil.
func (c *Consul) Stop() {
	if c == nil {
		return
	}
	c.cmd.Process.Kill()
	<-c.done
	os.RemoveAll(c.Dir)
}

// FreePorts returns n distinct TCP ports that are free on loopback, and that no other call
// returns while this process lives, in another process either. They are random, and below
// those that systems give to processes that ask for any.
func FreePorts(n int) ([]int, error) {
	const lowest, end = 10_000, 32_768
	ports := make([]int, 0, n)
	var last error
	for try := 0; len(ports) < n; try++ {
		if try > 100*n {
			return nil, fmt.Errorf("find %d free ports: %w", n, last)
		}
		port := lowest + rand.IntN(end-lowest)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close() // all at the end, so that they differ
			err = claim(port)
		}
		if err != nil {
			last = err
			continue
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// ClosedAddress returns a loopback address that refuses connections until the test ends.
func ClosedAddress(t testing.TB) string {
	t.Helper()
	return ReservePort(t).String()
}
