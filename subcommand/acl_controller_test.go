package subcommand

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestACLController: the whole command sets Consul up so that tasks can log in,
// removes what a dead task left, keeps what a live one has, serves its metrics, and
// ends.
func TestACLController(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ids := w.run(3)
	w.leave(ids...)
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", port(ports[0]))
	p := w.controller("-metrics-addr", address)
	sts := awstest.New(t, awstest.Role{Account: "123456789012", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"}})
	w.operator(sts)
	dead, alive := w.logIn(sts, ids[0]), w.logIn(sts, ids[1])
	w.ecs.Stop(ids[0])
	live := slices.Sorted(slices.Values(ids[1:]))
	testkit.Eventually(t, "the dead task's services are gone", func() bool { return slices.Equal(w.services(), live) })
	testkit.Eventually(t, "its tokens are gone", func() bool {
		return !w.knows(dead[0]) && !w.knows(dead[1])
	})
	for _, secret := range alive {
		if !w.knows(secret) {
			t.Error("a live task has lost a token")
		}
	}
	figures := []string{"leader 1", "tasks 2", "tokens 2", "services 4",
		`deletions_total{kind="token",reason="stopped"} 2`, `deletions_total{kind="service",reason="stopped"} 2`,
		"consul_errors_total 0"}
	var text string
	// A pass counts what it found, so that the one after the last deletion shows
	// what is left.
	defer func() {
		if t.Failed() {
			t.Logf("the metrics last read:\n%s", text)
		}
	}()
	testkit.Eventually(t, fmt.Sprintf("the metrics show %q", figures), func() bool {
		text = body(t, "http://"+address+"/metrics", http.StatusOK)
		return !slices.ContainsFunc(figures, func(figure string) bool {
			return !strings.Contains(text, "consul_ecs_controller_"+figure+"\n")
		})
	})
	if got := body(t, "http://"+address+"/healthz", http.StatusOK); got != "ok\n" {
		t.Errorf("health %q", got)
	}
	if !w.leads(p) {
		t.Errorf("%q leads", w.leader())
	}
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	if got := w.leader(); got != "" {
		t.Errorf("%q leads after the end", got)
	}
	if got := w.services(); !slices.Equal(got, live) {
		t.Errorf("services %q, want %q", got, live)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, agent := range w.agents {
		if !strings.HasPrefix(agent, "consul-ecs-controller/v") {
			t.Errorf("user agent %q", agent)
		}
	}
}

// body asks until the status is as wanted.
func body(t *testing.T, url string, status int) string {
	t.Helper()
	var text string
	testkit.Eventually(t, url+" answers", func() bool {
		res, err := http.Get(url)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		text = string(b)
		return err == nil && res.StatusCode == status
	})
	return text
}

// TestACLControllerResumesAfterAnOutageOfECS: two passes fail, at the default interval, so
// that the pause is at its longest.
func TestACLControllerResumesAfterAnOutageOfECS(t *testing.T) {
	testkit.Long(t) // controller.TestCleanUpResumes proves the bound in fake time
	t.Parallel()
	for _, code := range []string{"AccessDeniedException", "ThrottlingException"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newClusterWorld(t)
			ports, err := testkit.FreePorts(1)
			if err != nil {
				t.Fatal(err)
			}
			address := net.JoinHostPort("127.0.0.1", port(ports[0]))
			ids := w.run(2)
			w.leave(ids...)
			w.ecs.Fail(func(awstest.ECSCall) (int, string) { return http.StatusBadRequest, code })
			w.controller("-metrics-addr", address, "-interval", "10s")
			testkit.Within(t, 3*time.Minute, "two passes have failed", func() bool {
				return strings.Contains(body(t, "http://"+address+"/metrics", http.StatusOK),
					`consul_ecs_controller_passes_total{result="error"} 2`)
			})
			w.ecs.Stop(ids[0])
			w.ecs.Fail(nil)
			took := testkit.Within(t, 30*time.Second, "the dead task's services are gone",
				func() bool { return slices.Equal(w.services(), ids[1:]) })
			t.Logf("cleaned up %.1f s after ECS has recovered", took.Seconds())
		})
	}
}

// TestACLControllerCleansUpBesideARefusedMethod: one auth method has another type, which
// Consul cannot change. The controller makes the rest, reports it, cleans up, and makes
// the method once an operator has deleted it.
func TestACLControllerCleansUpBesideARefusedMethod(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	const refused = "iam-ecs-client-token"
	_, _, err := w.admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: refused, Type: "jwt", Config: map[string]any{
		"JWTValidationPubKeys": []string{testPublicKey}, "BoundIssuer": "test",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", port(ports[0]))
	ids := w.run(2)
	w.leave(ids...)
	w.ecs.Stop(ids[0])
	p := w.controller("-metrics-addr", address)
	testkit.Eventually(t, "the dead task's services are gone",
		func() bool { return slices.Equal(w.services(), ids[1:]) })
	metric := func(line string) bool {
		return strings.Contains(body(t, "http://"+address+"/metrics", http.StatusOK),
			"consul_ecs_controller_"+line+"\n")
	}
	testkit.Eventually(t, "the metrics show it", func() bool { return metric("setup_failing 1") })
	method, _, err := w.admin.ACL().AuthMethodRead("iam-ecs-service-token", nil)
	if err != nil || method == nil {
		t.Errorf("the other method: %v, %v", method, err)
	}
	if _, err := w.admin.ACL().AuthMethodDelete(refused, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "setup succeeds", func() bool { return metric("setup_failing 0") })
	if method, _, err := w.admin.ACL().AuthMethodRead(refused, nil); err != nil || method == nil ||
		method.Type != "aws-iam" {
		t.Errorf("the method that was refused: %+v, %v", method, err)
	}
	if !p.Running() {
		t.Error("the controller has ended")
	}
}

// testPublicKey is what a method of type jwt needs.
const testPublicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8OeKkMHwDTUHfmaXQFkczXISPgs8
ttk6M7SP9f919zP7z/7MKPYLlSg06WZ3zbUuCLzQnx9dPUELzQwLPLLpeA==
-----END PUBLIC KEY-----`

// takesOver is how long no controller leads, at most, after the leader was killed: until
// its session ends, twice the TTL of 10 s; the lock's delay; and the 5 s between two
// attempts, which Consul prolongs by up to a sixteenth. Processes get some patience more;
// package consulutil tests the bound itself in virtual time.
const takesOver = 2*10*time.Second + consulutil.LockDelay + 5*time.Second*17/16 + testkit.Patience/2

// TestACLControllerTakeOver: two controllers, and the leader is killed.
func TestACLControllerTakeOver(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	first := w.controller()
	testkit.Eventually(t, "the first leads", func() bool { return w.leads(first) })
	second := w.controller()
	ids := w.run(2)
	w.leave(ids...)
	w.ecs.Stop(ids[0])
	testkit.Eventually(t, "the first cleans up", func() bool { return len(w.services()) == 1 })
	first.Signal(syscall.SIGKILL)
	w.ecs.Stop(ids[1])
	took := testkit.Within(t, takesOver, "the second leads", func() bool { return w.leads(second) })
	t.Logf("killed, and taken over after %.1f s", took.Seconds())
	testkit.Eventually(t, "the second cleans up", func() bool { return len(w.services()) == 0 })
	// A leader that ends in order is followed at once.
	third := w.controller()
	second.Signal(syscall.SIGTERM)
	exits(t, second, 0)
	testkit.Eventually(t, "the third leads", func() bool { return w.leads(third) })
}

// TestACLControllerPaused: stopped for longer than its session lives, a leader that
// continues stops leading, and waits behind the one that leads.
func TestACLControllerPaused(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", port(ports[0]))
	first := w.controller("-metrics-addr", address)
	testkit.Eventually(t, "the first leads", func() bool { return w.leads(first) })
	second := w.controller()
	first.Signal(syscall.SIGSTOP)
	testkit.Within(t, takesOver, "the second leads", func() bool { return w.leads(second) })
	first.Signal(syscall.SIGCONT)
	took := testkit.Within(t, 15*time.Second+testkit.Patience/2, "the first does not lead", func() bool {
		return strings.Contains(body(t, "http://"+address+"/metrics", http.StatusOK),
			"consul_ecs_controller_leader 0\n")
	})
	t.Logf("stopped leading %.1f s after the pause", took.Seconds())
	ids := w.run(1)
	w.leave(ids...)
	w.ecs.Stop(ids[0])
	testkit.Eventually(t, "the second cleans up", func() bool { return len(w.services()) == 0 })
	if !first.Running() || !w.leads(second) {
		t.Errorf("first running %v, %q leads", first.Running(), w.leader())
	}
	second.Signal(syscall.SIGTERM)
	exits(t, second, 0)
	testkit.Eventually(t, "the first leads again", func() bool { return w.leads(first) })
}

// TestACLControllerStopsInTime: whichever server does not answer.
func TestACLControllerStopsInTime(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]string{
		"Consul":   "CONSUL_HTTP_ADDR=",
		"AWS":      "AWS_ENDPOINT_URL_ECS=http://",
		"metadata": "ECS_CONTAINER_METADATA_URI_V4=http://",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClusterWorld(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			asked := make(chan struct{})
			go func() {
				if c, err := l.Accept(); err == nil {
					close(asked)
					t.Cleanup(func() { c.Close() })
				}
			}()
			args := []string{"acl-controller", "-cluster", w.arn}
			if name == "metadata" {
				args = args[:1]
			}
			p := consulECS(t, append(w.env(), env+l.Addr().String()), args...)
			select {
			case <-asked:
			case <-time.After(testkit.Patience):
				t.Fatal("no request")
			}
			endsSoon(t, p)
		})
	}
}

// endsSoon sends TERM. The process has 5 s, of which it uses 2 s at most (package
// controller proves them in virtual time); the machine may be slow for as long again. One that
// waited for a request would take the 10 s that a request has.
func endsSoon(t *testing.T, p *testkit.Process) {
	t.Helper()
	start := time.Now()
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("ended after %s", took)
	}
}

// TestACLControllerHangsInTheMiddle: Consul stops answering a leader, which cannot
// release the lock.
func TestACLControllerHangsInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	p := w.controller()
	testkit.Eventually(t, "it leads", func() bool { return w.leads(p) })
	w.Freeze(t)
	endsSoon(t, p)
}

// TestACLControllerRefused: a token that may not do it all ends the controller,
// which names the rule; with that rule it gets further.
func TestACLControllerRefused(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	rules := ""
	for i, missing := range []string{
		`key_prefix "consul-ecs/" { policy = "write" }`,
		`session_prefix "" { policy = "write" }`,
		`acl = "write"`,
	} {
		policy, _, err := w.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: "refused-" + port(i), Rules: rules}, nil)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := w.admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		code, out := w.ends(t, "CONSUL_HTTP_TOKEN="+token.SecretID)
		if code != 2 || !strings.Contains(out, "a policy with: ") ||
			!strings.Contains(strings.ReplaceAll(out, `\"`, `"`), missing) {
			t.Errorf("without %s: exit code %d and\n%s", missing, code, out)
		}
		if i == 0 && !strings.Contains(out, "service_prefix") { // as for a token of hashicorp/consul-ecs
			t.Errorf("a token without any of the rules is not told all of them:\n%s", out)
		}
		rules += missing + "\n"
	}
	if code, out := controllerEnds(t, w.env(), "-cluster", w.arn, "-partitions-enabled"); code != 2 ||
		!strings.Contains(out, "Consul Enterprise") {
		t.Errorf("partitions without Enterprise: exit code %d and\n%s", code, out)
	}
	if code, out := w.ends(t, "CONSUL_HTTP_TOKEN=00000000-0000-4000-8000-00000000000f"); code != 2 ||
		!strings.Contains(out, "correct CONSUL_HTTP_TOKEN") {
		t.Errorf("an unknown token: exit code %d and\n%s", code, out)
	}
}

// TestACLControllerMistakes: all at once, before any request.
func TestACLControllerMistakes(t *testing.T) {
	t.Parallel()
	const meta = "ECS_CONTAINER_METADATA_URI_V4=http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		env  string
		args []string
		want []string
	}{
		"partition without partitions": {meta, []string{"-partition", "team"},
			[]string{`partition "team": give -partitions-enabled`}},
		"partition's name": {meta, []string{"-partitions-enabled", "-partition", `a" { }`},
			[]string{`partition "a\" { }": want at most 64 letters`}},
		"no cluster": {"ECS_CONTAINER_METADATA_URI_V4=", nil,
			[]string{"run this in a task of the ECS cluster, or give -cluster"}},
		"whole account by an empty path": {meta, []string{"-iam-role-path", ""},
			[]string{"or -trust-whole-account if that is what you want"}},
		"path and whole account": {meta, []string{"-iam-role-path", "/x/", "-trust-whole-account"},
			[]string{"not both"}},
		"Consul's address": {"CONSUL_HTTP_ADDR=https://",
			[]string{"-cluster", "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"}, []string{"want <host>:<port>"}},
		"CA text": {"CONSUL_CACERT_PEM=x",
			[]string{"-cluster", "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"}, []string{"consul client for"}},
		"everything": {meta, []string{"-cluster", "mesh", "-interval", "1ms", "-aws-rate", "-1", "-metrics-addr",
			"9102", "-log-level", "LOUD", "-iam-role-path", "//", "-partition", "x", "y"}, []string{
			`unexpected argument "y"`, `log level "LOUD"`, `cluster "mesh": want arn:`, "role path", `partition "x"`,
			"-interval 1ms: want 1s to 1h", "-aws-rate -1: want more than 0",
			`-metrics-addr "9102": want host:port or :port`,
		}},
		"address in no network": {meta, []string{"-metrics-addr", "192.0.2.1:9102"},
			[]string{"-metrics-addr: listen tcp 192.0.2.1:9102"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out := controllerEnds(t, []string{tt.env}, tt.args...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if lines := strings.Count(out, "\n"); lines != len(tt.want) {
				t.Errorf("%d lines for %d mistakes:\n%s", lines, len(tt.want), out)
			}
		})
	}
}
