package subcommand

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// attackedBroker starts a broker that leads, one of its tasks, and its audit log.
func attackedBroker(t *testing.T, flags ...string) (b *brokerProcess, task, audit string) {
	t.Helper()
	w := newClusterWorld(t)
	task = strings.Replace(w.arn, ":cluster/", ":task/", 1) + "/" + w.run(1)[0]
	dir := t.TempDir()
	audit = filepath.Join(dir, "audit")
	b = w.broker(t, dir, append([]string{"-networks", "10.0.0.0/8", "-audit-file", audit}, flags...)...)
	testkit.Eventually(t, "the broker leads", func() bool { return b.leads(t) })
	return b, task, audit
}

// forgedRequest returns the body of a request in the name of a task.
func forgedRequest(t *testing.T, task string) string {
	t.Helper()
	key, err := receiver.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(receiver.TokenRequest{
		Cluster: "mesh", TaskARN: task, CallbackPort: 8080, Nonce: receiver.NewNonce(), PublicKey: key.Public(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// dialTLS connects to a broker.
func (b *brokerProcess) dialTLS(t *testing.T) net.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(b.url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// tricks are requests as bytes; BODY is that of a request in the name of a task at ADDRESS, and
// LENGTH its length.
var tricks = map[string]string{
	"plain": "POST /v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"X-Forwarded-For": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: ADDRESS\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"X-Forwarded-For twice": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: " +
		"127.0.0.1\r\nX-Forwarded-For: ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"X-Forwarded-For hop by hop": "POST /v1/token HTTP/1.1\r\nHost: b\r\nConnection: " +
		"X-Forwarded-For\r\nX-Forwarded-For: ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"X-Real-IP": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX-Real-IP: ADDRESS\r\nTrue-Client-IP: " +
		"ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"Forwarded": "POST /v1/token HTTP/1.1\r\nHost: b\r\nForwarded: for=ADDRESS\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"PROXY line": "PROXY TCP4 ADDRESS 127.0.0.1 4000 8443\r\nPOST /v1/token HTTP/1.1\r\nHost: " +
		"b\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"length and chunks": "POST /v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\nPOST /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: ADDRESS\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"two lengths": "POST /v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"folded header": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX: a\r\n X-Forwarded-For: " +
		"ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"space before the colon": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For : " +
		"ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"NUL": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX: a\x00X-Forwarded-For: " +
		"ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"absolute URI": "POST https://ADDRESS/v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"two slashes":  "POST //v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"dots":         "POST /v1/health/../token HTTP/1.1\r\nHost: b\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"encoded path": "POST /v1%2Ftoken HTTP/1.1\r\nHost: b\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"TRACE":        "TRACE /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: ADDRESS\r\n\r\n",
	"CONNECT":      "CONNECT ADDRESS:8080 HTTP/1.1\r\nHost: ADDRESS:8080\r\n\r\n",
	"method override": "GET /v1/token HTTP/1.1\r\nHost: b\r\nX-HTTP-Method-Override: " +
		"POST\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"long header": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX: LONG\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"long body":   "POST /v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: 20480\r\n\r\nLONG",
	"Expect": "POST /v1/token HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\nX-Forwarded-For: " +
		"ADDRESS\r\nContent-Length: LENGTH\r\n\r\nBODY",
	"HTTP/1.0": "POST /v1/token HTTP/1.0\r\nX-Forwarded-For: ADDRESS\r\nContent-Length: " +
		"LENGTH\r\n\r\nBODY",
	"a chunk without an end": "POST /v1/token HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: " +
		"chunked\r\n\r\nffffffffffffffff\r\nBODY",
	"line ends without CR": "POST /v1/token HTTP/1.1\nHost: b\nX-Forwarded-For: ADDRESS\nContent-Length: " +
		"LENGTH\n\nBODY",
	"X-Forwarded-For with a port": "POST /v1/token HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: " +
		"ADDRESS:8080\r\nContent-Length: LENGTH\r\n\r\nBODY",
}

// No header, path, method or framing makes the broker take a stranger for a task.
func TestTricksWithRequestsGetNoToken(t *testing.T) {
	t.Parallel()
	b, task, audit := attackedBroker(t)
	for name, trick := range tricks {
		body := forgedRequest(t, task)
		text := strings.NewReplacer("BODY", body, "LENGTH", fmt.Sprint(len(body)), "ADDRESS", "10.0.0.1", "LONG",
			strings.Repeat("x", 20<<10)).Replace(trick)
		conn := b.dialTLS(t)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Logf("%s: %v", name, err) // the broker may end the connection before
		}
		statuses := answersOf(t, conn)
		if len(statuses) == 0 {
			t.Errorf("%s: no answer", name)
		}
		for _, status := range statuses {
			if status/100 == 2 {
				t.Errorf("%s: answered with %d", name, statuses)
			}
		}
	}
	log, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(log)) {
		if !strings.Contains(text, `"decision":"rejected"`) {
			t.Errorf("audit log: %s", text)
		}
	}
	if status, body := b.health(t); status != http.StatusOK {
		t.Errorf("health after it: %d %s", status, body)
	}
	t.Logf("%d tricks", len(tricks))
}

// answersOf returns the statuses of all answers on a connection, and closes it.
func answersOf(t *testing.T, conn net.Conn) (statuses []int) {
	t.Helper()
	defer conn.Close()
	for answers := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusContinue {
			statuses = append(statuses, resp.StatusCode)
		}
		// For a second one; the time also keeps the requests within the rate of one address.
		if err := conn.SetReadDeadline(time.Now().Add(time.Second / 4)); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *brokerProcess) health(t *testing.T) (int, string) {
	t.Helper()
	resp, err := b.client.Get(b.url + "/v1/health")
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Connections that do not speak, or stop within a request, end after brokerReadLimit, and the
// broker answers others meanwhile.
func TestSlowConnectionsEndAndHoldBackNone(t *testing.T) {
	t.Parallel()
	b, task, _ := attackedBroker(t)
	each := testkit.Share(1000)
	body := forgedRequest(t, task)
	var waiting sync.WaitGroup
	lasting := make(chan error, 3*each)
	address := strings.TrimPrefix(b.url, "https://")
	for n := range 3 * each {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		waiting.Go(func() {
			defer conn.Close()
			lasting <- stall(conn, []string{"", "POST /v1/token HTTP/1.1\r\nHost: b\r\nX: ",
				"POST /v1/token HTTP/1.1\r\nHost: b\r\nContent-Length: 9999\r\n\r\n" + body}[n%3])
		})
	}
	slowest := time.Duration(0)
	for range 10 {
		asked := time.Now()
		if status, text := b.health(t); status != http.StatusOK {
			t.Errorf("health beside %d connections: %d %s", 3*each, status, text)
		}
		slowest = max(slowest, time.Since(asked))
		<-time.After(100 * time.Millisecond)
	}
	waiting.Wait()
	close(lasting)
	for err := range lasting {
		if err != nil {
			t.Error(err)
			break
		}
	}
	t.Logf("%d connections, the slowest answer of health took %s", 3*each, slowest)
}

// stall sends the beginning of a request over TLS, or nothing at all, and returns an error if
// the server does not end the connection in time.
func stall(conn net.Conn, beginning string) error {
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		return err
	}
	if beginning != "" {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if _, err := io.WriteString(secured, beginning); err != nil {
			return nil // ended
		}
		conn = secured
	}
	started := time.Now()
	_, err := io.Copy(io.Discard, bufio.NewReader(conn))
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Errorf("a connection that sent %q lasts for more than %s", beginning, time.Since(started))
	}
	return nil
}

// A flood of long texts from one address adds little to the logs.
func TestFloodOfLongTextsDoesNotFillTheAuditLog(t *testing.T) {
	t.Parallel()
	b, task, audit := attackedBroker(t)
	attacks := testkit.Share(2000)
	for n := range attacks {
		body := strings.Replace(forgedRequest(t, task+"LONG"), "LONG", strings.Repeat("<", 15<<10), 1)
		resp, err := b.client.Post(b.url+"/v1/token", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		resp.Body.Close()
	}
	info, err := os.Stat(audit)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() == 0 || info.Size() > 128<<10 {
		t.Errorf("%d bytes of audit log after %d requests", info.Size(), attacks)
	}
	t.Logf("%d requests, %d bytes of audit log", attacks, info.Size())
}
