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

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// loadRate is how many tasks ask for a token a second, for loadTime.
	loadRate, loadTime = 200, 20 * time.Second
	// ecsDelay and consulDelay are the times that ECS and Consul take for an answer.
	ecsDelay, consulDelay = 30 * time.Millisecond, 10 * time.Millisecond
)

// BenchmarkLoad has 200 tasks a second ask a broker for their first token, each with the
// real receiver and its own TLS connection. The broker is a process with one
// processor; ECS and the backend in it are fakes with delays. It reports the time from a
// request to the written token file, the processor time of the broker, and the calls of
// DescribeTasks, of which there may be 10 a second.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		p := testkit.StartProcess(b, testkit.ProcessOptions{Env: []string{"GOMAXPROCS=1"}}, testkit.SelfArgs("loaded-broker")...)
		address, certificate, _ := strings.Cut(p.Line(), " ")
		der, err := base64.StdEncoding.DecodeString(certificate)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		took := load(b, address, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		seconds := time.Since(start).Seconds()
		slices.Sort(took)
		b.ReportMetric(float64(len(took))/seconds, "tokens/s")
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-median")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
		p.Signal(syscall.SIGTERM)
		var cpu, calls float64
		if _, err := fmt.Sscan(p.Line(), &cpu, &calls); err != nil {
			b.Fatal(err)
		}
		if code := p.Wait(); code != 0 {
			b.Fatalf("the broker ended with %d", code)
		}
		b.ReportMetric(cpu*1000/float64(len(took)), "cpu-ms/token")
		b.ReportMetric(calls/seconds, "DescribeTasks/s")
	}
}

// load starts receivers at loadRate and returns how long each took.
func load(b *testing.B, address string, ca []byte) []time.Duration {
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		took    []time.Duration
	)
	dir := b.TempDir()
	tick := time.NewTicker(time.Second / loadRate)
	defer tick.Stop()
	for n := range loadRate * int(loadTime/time.Second) {
		<-tick.C
		running.Go(func() {
			start := time.Now()
			if err := receive(b.Context(), n, dir, address, ca); err != nil {
				b.Errorf("task %d: %v", n, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
		})
	}
	running.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return took
}

// receive is token-receive in task n.
func receive(ctx context.Context, n int, dir, address string, ca []byte) error {
	client, err := receiver.NewBroker(receiver.BrokerOptions{Address: address, CAPEM: ca})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, strconv.Itoa(n))
	return receiver.Run(ctx, receiver.Options{File: file, Port: listener.Addr().(*net.TCPAddr).Port, Limit: time.Minute}, receiver.Ports{
		Metadata: loadedTask(n), Broker: client, Log: hclog.NewNullLogger(),
		Listen: func(context.Context, int) (net.Listener, error) { return listener, nil },
	})
}

type loadedTask int

func (n loadedTask) Task(context.Context) (workload.Task, error) {
	return workload.Task{Cluster: clusterARN, TaskARN: taskARN(int(n))}, nil
}

func (loadedTask) Self() string { return "receive" }

// loadedECS has every task, and counts the calls.
type loadedECS struct{ calls *atomic.Int64 }

func (e loadedECS) DescribeTasks(_ context.Context, _ string, arns []string) (*ecs.DescribeTasksOutput, error) {
	e.calls.Add(1)
	<-time.After(ecsDelay)
	out := &ecs.DescribeTasksOutput{}
	for _, arn := range arns {
		out.Tasks = append(out.Tasks, *runningTask(arn, "10.0.0.1"))
	}
	return out, nil
}

func (loadedECS) DescribeTaskDefinition(ctx context.Context, arn string) (*types.TaskDefinition, error) {
	return (&fakeECS{labels: map[string]string{PoliciesLabel: "app"}}).DescribeTaskDefinition(ctx, arn)
}

// slowBackend takes its time, as a login at Consul does.
type slowBackend struct{ *fakeBackend }

func (s slowBackend) Redeem(ctx context.Context, g backend.Grant) (backend.Token, error) {
	<-time.After(consulDelay)
	return s.fakeBackend.Redeem(ctx, g)
}

// benchCertificate has an elliptic key: with RSA the handshakes take more time than all
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

// loadedBroker is the broker of BenchmarkLoad. It prints its address and its certificate,
// and after TERM the seconds of processor time that it took, and how often it called
// DescribeTasks.
func loadedBroker([]string) int {
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := ecsread.ParseCluster(clusterARN)
	if err != nil {
		panic(err)
	}
	var calls atomic.Int64
	b, err := New(Options{
		Rules: Rules{
			Clusters: []ecsread.Cluster{c}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			MinPort: 1024, MaxPort: 65535, Policies: []string{"app"},
		},
		Source: loadedECS{&calls}, Backend: slowBackend{&fakeBackend{tokens: map[string]made{}}},
		Store: &Memory{}, Audit: io.Discard, Metrics: NewMetrics("test"), Log: hclog.NewNullLogger(),
		// As if a proxy were before the broker: the tasks are ports of this machine.
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	})
	if err != nil {
		panic(err)
	}
	go func() { _ = b.Run(term, nil) }()
	server := httptest.NewUnstartedServer(b.Handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{benchCertificate()}}
	server.StartTLS()
	defer server.Close()
	fmt.Println(server.URL, base64.StdEncoding.EncodeToString(server.Certificate().Raw))
	<-term.Done()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	fmt.Println(time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds(), calls.Load())
	return 0
}
