package subcommand

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// brokerProcess is one of several token brokers of a cluster.
type brokerProcess struct {
	*testkit.Process
	url    string
	client *http.Client
}

// broker starts a token broker at a free port, with more flags. Its certificate is in dir.
func (w *clusterWorld) broker(t *testing.T, dir string, flags ...string) *brokerProcess {
	t.Helper()
	return w.brokerWith(t, dir, w.env(), flags...)
}

func (w *clusterWorld) brokerWith(t *testing.T, dir string, env []string, flags ...string) *brokerProcess {
	t.Helper()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := certificate(t, dir, "first")
	address := net.JoinHostPort("127.0.0.1", port(ports[0]))
	line := testkit.SelfArgs("consul-ecs", "token-broker", "-clusters", w.arn, "-policies", "app-*", "-networks",
		"192.0.2.0/24",
		"-listen", address, "-cert-file", certFile, "-key-file", keyFile, "-backend", "consul-acl", "-advertise",
		"https://"+address)
	line = append(line, flags...)
	return &brokerProcess{testkit.StartProcess(t, testkit.ProcessOptions{Env: env}, line...), "https://" + address,
		brokerClient(t)}
}

// brokerClient takes any certificate, and follows no redirect.
func brokerClient(t *testing.T) *http.Client {
	client := &http.Client{
		Timeout:       testkit.Patience,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// ask posts a token request that no broker can accept, and returns the answer's status,
// address of redirection and body.
func (b *brokerProcess) ask(t *testing.T) (status int, location, body string) {
	t.Helper()
	resp, err := b.client.Post(b.url+"/v1/token", "application/json", strings.NewReader("{}"))
	if err != nil {
		return 0, "", err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(text)
}

// leads reports whether the broker answers token requests itself.
func (b *brokerProcess) leads(t *testing.T) bool {
	status, _, _ := b.ask(t)
	return status == http.StatusBadRequest
}

// sendsTo reports whether the broker redirects token requests to another one.
func (b *brokerProcess) sendsTo(t *testing.T, leader *brokerProcess) bool {
	status, location, _ := b.ask(t)
	return status == http.StatusTemporaryRedirect && location == leader.url+"/v1/token"
}

// TestTokenBrokersTakeOver: of several brokers one leads, and the others point to it. One
// that is killed is followed when its session has ended, and one that ends in order at once.
func TestTokenBrokersTakeOver(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	first := w.broker(t, t.TempDir())
	testkit.Eventually(t, "the first leads", func() bool { return first.leads(t) })
	second := w.broker(t, t.TempDir())
	testkit.Eventually(t, "the second points to the first", func() bool { return second.sendsTo(t, first) })
	first.Signal(syscall.SIGKILL)
	took := testkit.Within(t, takesOver, "the second leads", func() bool { return second.leads(t) })
	t.Logf("killed, and taken over after %.1f s", took.Seconds())
	third := w.broker(t, t.TempDir())
	testkit.Eventually(t, "the third points to the second", func() bool { return third.sendsTo(t, second) })
	endsSoon(t, second.Process)
	testkit.Eventually(t, "the third leads", func() bool { return third.leads(t) })
}

// TestPausedTokenBrokerStopsLeading: stopped for longer than its session lives, a leader
// that continues points to the one that leads.
func TestPausedTokenBrokerStopsLeading(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newClusterWorld(t)
	first := w.broker(t, t.TempDir())
	testkit.Eventually(t, "the first leads", func() bool { return first.leads(t) })
	second := w.broker(t, t.TempDir())
	first.Signal(syscall.SIGSTOP)
	testkit.Within(t, takesOver, "the second leads", func() bool { return second.leads(t) })
	first.Signal(syscall.SIGCONT)
	testkit.Eventually(t, "the first points to the second", func() bool { return first.sendsTo(t, second) })
	if !second.leads(t) {
		t.Error("the second does not lead any longer")
	}
}

// wire forwards connections to a server. When it is cut, nothing gets through, and no
// connection ends.
type wire struct {
	net.Listener
	mu sync.RWMutex // held while it is cut
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &wire{Listener: listener}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { client.Close(); conn.Close() })
			go l.copy(client, conn)
			go l.copy(conn, client)
		}
	}()
	return l
}

func (l *wire) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		l.mu.RLock()
		_, writeErr := to.Write(buffer[:n])
		l.mu.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

// TestTokenBrokerCutOffFromConsulStopsLeading: it answers that none leads, and points to the
// other broker when it reaches Consul again.
func TestTokenBrokerCutOffFromConsulStopsLeading(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newClusterWorld(t)
	l := newWire(t, w.HTTPAddr)
	first := w.brokerWith(t, t.TempDir(), append(w.env(), "CONSUL_HTTP_ADDR="+l.Addr().String()))
	testkit.Eventually(t, "the first leads", func() bool { return first.leads(t) })
	second := w.broker(t, t.TempDir())
	testkit.Eventually(t, "the second points to the first", func() bool { return second.sendsTo(t, first) })
	l.mu.Lock()
	took := testkit.Within(t, takesOver, "the second leads", func() bool { return second.leads(t) })
	status, _, body := first.ask(t)
	t.Logf("cut off, and taken over after %.1f s", took.Seconds())
	l.mu.Unlock()
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "no_leader") {
		t.Errorf("the first answers %d %s, want 503 without leader", status, body)
	}
	testkit.Eventually(t, "the first points to the second", func() bool { return first.sendsTo(t, second) })
}

// TestTokenBrokerRequiresAdmission: a task has a token if its definition is registered as admit
// wrote it, and none if it was changed after that.
func TestTokenBrokerRequiresAdmission(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	if _, _, err := w.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: "app-config"}, nil); err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(testkit.Root(), "examples", "admit")
	plain, err := os.ReadFile(filepath.Join(example, "web.json"))
	if err != nil {
		t.Fatal(err)
	}
	plain = bytes.Replace(plain, []byte(`"dockerLabels": {`),
		[]byte(`"dockerLabels": {"consul.hashicorp.com/policies": "app-config", `), 1)
	code, admitted, stderr := callAdmit(string(plain), "-config", filepath.Join(example, "mesh.json"), "-")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	b := w.broker(t, t.TempDir(), "-require-admission", "-networks", "10.0.0.0/8", "-trusted-proxies", "127.0.0.0/8",
		"-allow-unknown-address")
	testkit.Eventually(t, "the broker leads", func() bool { return b.leads(t) })
	for _, tt := range []struct {
		definition string
		status     int
		code       string
	}{
		{admitted, http.StatusAccepted, ""},
		{strings.Replace(admitted, `"app-config"`, `"app-admin"`, 1), http.StatusUnprocessableEntity, "admission"},
	} {
		w.ecs.Register(tt.definition)
		arn := w.ecs.Run(awstest.TaskGroup{Family: "web", Count: 1, Cluster: "mesh"})[0]
		key, err := receiver.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(receiver.TokenRequest{Cluster: "mesh", TaskARN: arn, CallbackPort: 8080,
			Nonce: receiver.NewNonce(), PublicKey: key.Public()})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.client.Post(b.url+"/v1/token", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := receiver.ReadBody(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tt.status || !strings.Contains(string(text), tt.code) {
			t.Errorf("answer %d %s, %v; want %d %s", resp.StatusCode, text, err, tt.status, tt.code)
		}
	}
}
