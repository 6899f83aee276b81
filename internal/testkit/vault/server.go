package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Bin is the environment variable that names the program; without it there is the fake.
const Bin = "VAULT_BIN"

// Server is a Vault server on the loopback interface, or one of its namespaces.
type Server struct {
	// URL is its address, and Root a token that may do everything.
	URL, Root string
	// Namespace is sent with each request of Do; empty for the root namespace.
	Namespace string

	unsealKey string
	fake      *fake // nil for a program
	stop      func()
}

// Program starts the program that VAULT_BIN names, for TestMain; without that variable it
// returns nil, on which ForTest works.
func Program() (*Server, error) {
	program := os.Getenv(Bin)
	if program == "" {
		return nil, nil
	}
	return run(program)
}

// ForTest returns s, whose state other tests share, or if s is nil a fake of this test's own.
func (s *Server) ForTest(t testing.TB) *Server {
	t.Helper()
	if s != nil {
		return s
	}
	return New(t)
}

// Stop ends the server. It is safe on nil.
func (s *Server) Stop() {
	if s != nil {
		s.stop()
	}
}

// New starts a server of this test's own: the program, or without it the fake.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		f := newFake()
		server := httptest.NewServer(f)
		s = &Server{URL: server.URL, Root: f.root, unsealKey: f.unsealKey, fake: f, stop: server.Close}
	}
	t.Cleanup(s.Stop)
	return s
}

// unsealKeyLine is the line of the program's output with the key.
var unsealKeyLine = regexp.MustCompile(`(?m)^Unseal Key: (\S+)$`)

// run starts the program in dev mode and waits until it serves.
func run(program string) (*Server, error) {
	dir, err := os.MkdirTemp("", "vault-test-")
	if err != nil {
		return nil, err
	}
	ports, err := testkit.FreePorts(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	const root = "root"
	cmd := exec.Command(program, "server", "-dev", "-dev-listen-address="+address, "-dev-root-token-id="+root,
		"-dev-no-store-token")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", Bin, err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	s := &Server{URL: "http://" + address, Root: root, stop: func() {
		cmd.Process.Kill()
		<-ended
		os.RemoveAll(dir)
	}}
	if err := s.await(output.Name(), ended); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s server -dev: %w", program, err)
	}
	return s, nil
}

// await returns when the server serves its root token and has printed its unseal key.
func (s *Server) await(output string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		text, err := os.ReadFile(output)
		if err != nil {
			return err
		}
		key := unsealKeyLine.FindSubmatch(text)
		status, _, err := s.send(ctx, http.MethodGet, "auth/token/lookup-self", s.Root, nil, nil)
		if key != nil && err == nil && status == http.StatusOK {
			s.unsealKey = string(key[1])
			return nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("it has ended: %s", text)
		case <-ctx.Done():
			return fmt.Errorf("it does not serve: status %d, %w: %s", status, err, text)
		}
	}
}

// Answer is what tests read of an answer.
type Answer struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Auth     struct {
		ClientToken string   `json:"client_token"`
		Accessor    string   `json:"accessor"`
		Policies    []string `json:"policies"`
	} `json:"auth"`
	Data map[string]any `json:"data"`
}

// Do sends a request to the path below /v1/ and returns its status and answer. Body is
// encoded as JSON unless it is nil; header has pairs of a name and a value.
func (s *Server) Do(t testing.TB, method, path, token string, body any, header ...string) (int, Answer) {
	t.Helper()
	status, answer, err := s.send(t.Context(), method, path, token, body, header)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func (s *Server) send(ctx context.Context, method, path, token string, body any, header []string) (int, Answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, Answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+"/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return 0, Answer{}, err
	}
	req.Header.Set("X-Vault-Token", token)
	if s.Namespace != "" {
		req.Header.Set("X-Vault-Namespace", s.Namespace)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, Answer{}, err
	}
	defer resp.Body.Close()
	answer := Answer{}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		return resp.StatusCode, Answer{}, err
	}
	return resp.StatusCode, answer, nil
}

// must sends a request as root that succeeds.
func (s *Server) must(t testing.TB, method, path string, body any) Answer {
	t.Helper()
	status, answer := s.Do(t, method, path, s.Root, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, strings.Join(answer.Errors, "; "))
	}
	return answer
}

// Policy writes a policy of this name.
func (s *Server) Policy(t testing.TB, name, rules string) {
	t.Helper()
	s.must(t, http.MethodPut, "sys/policies/acl/"+name, map[string]string{"policy": rules})
}

// Role writes a token role with the fields of the API's body.
func (s *Server) Role(t testing.TB, name string, body map[string]any) {
	t.Helper()
	s.must(t, http.MethodPut, "auth/token/roles/"+name, body)
}

// Token creates an orphan with the fields of the API's body, such as policies and period, and
// returns its secret and accessor.
func (s *Server) Token(t testing.TB, body map[string]any) (secret, accessor string) {
	t.Helper()
	auth := s.must(t, http.MethodPost, "auth/token/create-orphan", body).Auth
	return auth.ClientToken, auth.Accessor
}

// Lookup returns what the server knows of the token of an accessor, and false for none.
func (s *Server) Lookup(t testing.TB, accessor string) (map[string]any, bool) {
	t.Helper()
	status, answer := s.Do(t, http.MethodPost, "auth/token/lookup-accessor", s.Root,
		map[string]string{"accessor": accessor})
	switch {
	case status == http.StatusOK:
		return answer.Data, true
	case !strings.Contains(strings.Join(answer.Errors, ""), "invalid accessor"):
		t.Fatalf("lookup-accessor: %d %s", status, answer.Errors)
	}
	return nil, false
}

// WithNamespace returns the server with a new namespace, and false if it has none at all.
func (s *Server) WithNamespace(t testing.TB, name string) (*Server, bool) {
	t.Helper()
	status, answer := s.Do(t, http.MethodPut, "sys/namespaces/"+name, s.Root, map[string]any{})
	if status == http.StatusNotFound {
		return nil, false
	}
	if status >= 300 {
		t.Fatalf("create namespace %s: %d %s", name, status, answer.Errors)
	}
	within := *s
	within.Namespace = name
	return &within, true
}

// Seal seals the server: it answers 503 until Unseal.
func (s *Server) Seal(t testing.TB) {
	t.Helper()
	s.must(t, http.MethodPut, "sys/seal", nil)
}

// Unseal ends what Seal began, and returns when the server serves again.
func (s *Server) Unseal(t testing.TB) {
	t.Helper()
	if status, answer := s.Do(t, http.MethodPut, "sys/unseal", "",
		map[string]string{"key": s.unsealKey}); status != http.StatusOK {
		t.Fatalf("unseal: %d %s", status, answer.Errors)
	}
	testkit.Eventually(t, "the server serves", func() bool {
		status, _ := s.Do(t, http.MethodGet, "auth/token/lookup-self", s.Root, nil)
		return status == http.StatusOK
	})
}

// Pass returns when the time has passed by the server's clock: at once with the fake, whose
// clock it moves, and otherwise when a token of that life has ended.
func (s *Server) Pass(t testing.TB, d time.Duration) {
	t.Helper()
	if s.fake != nil {
		s.fake.advance(d)
		return
	}
	secret, _ := s.Token(t, map[string]any{"ttl": d.String(), "policies": []string{"default"}})
	testkit.Eventually(t, "a token of "+d.String()+" ends", func() bool {
		status, _ := s.Do(t, http.MethodGet, "auth/token/lookup-self", secret, nil)
		return status == http.StatusForbidden
	})
}
