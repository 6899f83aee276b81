package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// loadRate is how many tasks ask for a token a second, for loadTime.
	loadRate, loadTime = 200, 20 * time.Second
	// ecsDelay and consulDelay are the times that ECS and Consul take for an answer.
	ecsDelay, consulDelay = 30 * time.Millisecond, 10 * time.Millisecond
	// mostMedian is how long a task may wait for its token in the median.
	mostMedian = time.Second
)

// BenchmarkLoad lets 200 tasks a second ask a broker for their first token, each with the
// real receiver and its own TLS connection. The broker is a process with one processor.
// It fails when a request fails, when one processor cannot sustain the load, and when
// DescribeTasks is called more often than its budget permits.
//
//   - memory: the records are in memory, and the backend is a fake that takes its time.
//   - consul: both are a real Consul, with the leader's lock and the ceiling of policies.
func BenchmarkLoad(b *testing.B) {
	tasks := awstest.NewECS(b, awstest.ECSOptions{})
	tasks.Register(`{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
		"containerDefinitions": [{"name": "app", "image": "app", "dockerLabels": {"` + policiesLabel + `": "app"}}]}`)
	consul, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(consul.Require(b).Stop)
	client, err := consulutil.NewClient(consulutil.Options{Address: consul.HTTPAddr, Token: consul.Token})
	if err != nil {
		b.Fatal(err)
	}
	_, _, err = client.ACL().PolicyCreate(&api.ACLPolicy{Name: "app", Rules: `key_prefix "app/" { policy = "read" }`},
		nil)
	if err != nil {
		b.Fatal(err)
	}
	tasks.Fail(func(awstest.ECSCall) (int, string) { <-time.After(ecsDelay); return 0, "" })
	for _, name := range []string{"memory", "consul"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				arns := tasks.Run(awstest.TaskGroup{Family: "app", Count: loadRate * int(loadTime/time.Second),
					Cluster: "shop"})
				loadBroker(b, consul, name, tasks, arns)
				tasks.Stop(arns...)
			}
		})
	}
}

func loadBroker(b *testing.B, consul *testkit.Consul, name string, tasks *awstest.ECS, arns []string) {
	env := []string{"GOMAXPROCS=1", "AWS_ENDPOINT_URL_ECS=" + tasks.URL(),
		"AWS_ACCESS_KEY_ID=" + tasks.Simulator.Key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + tasks.Simulator.Key.Secret}
	if name == "consul" {
		env = append(env, "CONSUL_HTTP_ADDR="+consul.HTTPAddr, "CONSUL_HTTP_TOKEN="+consul.Token)
	}
	p := testkit.StartProcess(b, testkit.ProcessOptions{Env: env}, testkit.SelfArgs("loaded-broker", name)...)
	address, certificate, _ := strings.Cut(p.Line(), " ")
	der, err := base64.StdEncoding.DecodeString(certificate)
	if err != nil {
		b.Fatal(err)
	}
	calls, start := tasks.Calls("DescribeTasks"), time.Now()
	took := load(b, arns, address, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	seconds := time.Since(start).Seconds()
	calls = tasks.Calls("DescribeTasks") - calls
	p.Signal(syscall.SIGTERM)
	var cpu, waited float64
	if _, err := fmt.Sscan(p.Line(), &cpu, &waited); err != nil {
		b.Fatal(err)
	}
	if code := p.Wait(); code != 0 {
		b.Fatalf("the broker ended with %d", code)
	}
	judge(b, took, seconds, cpu, float64(calls), waited > cpu)
}

// judge reports what the load has taken, and what of it is too much. Latencies are not
// judged on a machine that is busy with something else.
func judge(b *testing.B, took []time.Duration, seconds, cpu, calls float64, busy bool) {
	tokens := float64(len(took))
	early, late := median(took[:len(took)/4]), median(took[len(took)*3/4:])
	slices.Sort(took)
	middle, slow := median(took), took[len(took)*99/100]
	for unit, n := range map[string]float64{
		"tokens/s": tokens / seconds, "ms-median": middle.Seconds() * 1000, "ms-p99": slow.Seconds() * 1000,
		"cpu-ms/token":    cpu * 1000 / tokens,
		"DescribeTasks/s": calls / seconds, "tasks/call": 2 * tokens / calls,
		// each is described before and after its delivery
	} {
		b.ReportMetric(n, unit)
	}
	if budget := DescribeRate * (seconds + 1); calls > budget { // with the burst
		b.Errorf("%.0f calls of DescribeTasks, want at most %.0f", calls, budget)
	}
	if tokens/cpu < loadRate {
		b.Errorf("one processor gives %.0f tokens a second, want %d", tokens/cpu, loadRate)
	}
	if middle >= mostMedian && !busy {
		b.Errorf("a token takes %s in the median, want less than %s", middle, mostMedian)
	}
	if late > 3*early+100*time.Millisecond && !busy {
		b.Errorf("at first a token takes %s, at last %s: requests wait for each other", early, late)
	}
	if busy {
		b.Log("LATENCY NOT PROVEN: the broker has waited for a processor longer than it had one")
	}
	if b.Failed() {
		b.Logf("%.0f tokens in %.1f s, %s in the median, %s for 99 %%, %.2f s of processor time, %.0f calls of "+
			"DescribeTasks", tokens, seconds, middle, slow, cpu, calls)
	}
}

func median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

// load starts receivers at loadRate and returns how long each took, in the order of their
// starts.
func load(b *testing.B, arns []string, address string, ca []byte) []time.Duration {
	var (
		running sync.WaitGroup
		failed  atomic.Int64
	)
	dir, begin, took := b.TempDir(), time.Now(), make([]time.Duration, len(arns))
	for n, arn := range arns {
		<-time.After(time.Until(begin.Add(time.Duration(n) * time.Second / loadRate)))
		running.Go(func() {
			start := time.Now()
			err := receive(b.Context(), arn, filepath.Join(dir, strconv.Itoa(n)), address, ca)
			if err != nil && failed.Add(1) == 1 {
				b.Error(err)
			}
			took[n] = time.Since(start)
		})
	}
	running.Wait()
	if n := failed.Load(); n > 0 {
		b.Fatalf("%d of %d requests failed", n, len(arns))
	}
	return took
}

// receive runs token-receive as a task does.
func receive(ctx context.Context, arn, file, address string, ca []byte) error {
	client, err := receiver.NewClient(receiver.ClientOptions{Address: address, CAPEM: ca})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return receiver.Run(ctx, receiver.Options{File: file, Port: listener.Addr().(*net.TCPAddr).Port,
		Limit: time.Minute}, receiver.Deps{
		FirstTask: func(context.Context, time.Duration) (workload.Task, error) {
			return workload.Task{Cluster: clusterARN, TaskARN: arn}, nil
		},
		Client: client, Log: hclog.NewNullLogger(),
		Listen: func(context.Context, int) (net.Listener, error) { return listener, nil },
	})
}

// slowBackend takes its time, as a login at Consul does.
type slowBackend struct{ *fakeBackend }

func (s slowBackend) Redeem(ctx context.Context, g backend.Grant) (backend.Token, error) {
	<-time.After(consulDelay)
	return s.fakeBackend.Redeem(ctx, g)
}

// benchCertificate makes a certificate with an elliptic key: with RSA the handshakes take more time than all
// the rest.
func benchCertificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// loadedBroker runs the broker of BenchmarkLoad. It prints its address and its certificate,
// and after TERM the seconds of processor time that it took, and that it waited for one.
func loadedBroker(args []string) int {
	leading, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o, elector, err := loadedOptions(leading, args[0])
	if err != nil {
		panic(err)
	}
	b := New(o)
	go func() { _ = b.Run(leading, elector) }()
	start := time.Now()
	for tick := time.NewTicker(time.Millisecond); b.leadership.Load() == nil; <-tick.C {
		if time.Since(start) > testkit.Patience {
			panic("the broker does not lead")
		}
	}
	server := httptest.NewUnstartedServer(b.Handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{benchCertificate()}}
	server.StartTLS()
	defer server.Close()
	fmt.Println(server.URL, base64.StdEncoding.EncodeToString(server.Certificate().Raw))
	<-leading.Done()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	fmt.Println(time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds(), waitedForProcessor().Seconds())
	return 0
}

// waitedForProcessor returns how long the threads of this process were ready to run and did not.
func waitedForProcessor() time.Duration {
	var sum time.Duration
	threads, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		panic(err)
	}
	for _, thread := range threads {
		var ran, waited time.Duration
		text, err := os.ReadFile(thread)
		if err == nil {
			_, err = fmt.Sscan(string(text), &ran, &waited)
		}
		if err == nil { // it may have ended
			sum += waited
		}
	}
	return sum
}

func loadedOptions(ctx context.Context, name string) (Options, Elector, error) {
	c, err := awsutil.ParseCluster(clusterARN)
	if err != nil {
		return Options{}, nil, err
	}
	config, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{Region: c.Region, UserAgent: "load", Version: "test"})
	if err != nil {
		return Options{}, nil, err
	}
	o := Options{
		Rules: Rules{
			Clusters: []awsutil.Cluster{c}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			MinPort: 1024, MaxPort: 65535, Policies: []string{"app"},
		},
		Source:      awsutil.NewECSReader(config, awsutil.ECSReaderOptions{CallsPerSecond: DescribeRate}),
		BackendName: "fake", Backend: slowBackend{&fakeBackend{tokens: map[string]made{}}},
		Store: &MemoryStore{}, Audit: io.Discard, Metrics: NewMetrics("test"), Log: hclog.NewNullLogger(),
		// As if a proxy were before the broker: the tasks are ports of this machine.
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowUnknownAddress: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}
	if name == "memory" {
		return o, nil, nil
	}
	client, err := consulutil.NewClient(consulutil.Options{MaxConns: 64})
	if err != nil {
		return o, nil, err
	}
	lock, err := consulutil.NewLock(consulutil.LockOptions{Key: "load/leader", Session: "load", Log: o.Log})
	o.Backend = &backend.ACLBackend{Client: client}
	o.Store = KVStore{Client: client, Prefix: "load/tasks/", Lock: lock.Key, Session: lock.SessionID}
	o.Ceiling = func(ctx context.Context, names []string) error {
		return backend.CheckCeiling(ctx, consulutil.NewACLReader(client, ""), "", names)
	}
	return o, lock, err
}
