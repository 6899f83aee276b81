package subcommand

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func wrapEnvoy(t *testing.T, env []string, flags []string, command ...string) *testkit.Process {
	t.Helper()
	return consulECS(t, env, append(append([]string{"envoy-entrypoint"}, flags...), command...)...)
}

func exits(t testing.TB, p *testkit.Process, want int) {
	t.Helper()
	if got := p.Wait(); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
}

func TestEnvoyEntrypointUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"no command", nil, 1},
		{"only --", []string{"--"}, 1},
		{"bad flag", []string{"-nonsense", "true"}, 1},
		{"bad level", []string{"-log-level", "LOUD", "true"}, 1},
		{"no such program", []string{"no-such-program"}, 1},
		{"help", []string{"-h"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exits(t, wrapEnvoy(t, nil, c.args), c.want)
		})
	}
}

func TestEnvoyEntrypointChildEnds(t *testing.T) {
	t.Parallel()
	p := wrapEnvoy(t, nil, []string{"-log-level", "debug", "--"}, worker()...)
	p.Expect("ready")
	p.Stdin.Close()
	exits(t, p, 0)
}

func TestEnvoyEntrypointTermIsNotForwardedAndChildFinishes(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	p := wrapEnvoy(t, m.env(), nil, worker()...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	m.reads(t, 3)
	p.Stdin.Close()
	exits(t, p, 0)
}

func TestEnvoyEntrypointForwardsInterrupt(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	for _, signals := range [][]syscall.Signal{{syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGINT}} {
		p := wrapEnvoy(t, m.env(), nil, worker()...)
		p.Expect("ready")
		for _, sig := range signals {
			p.Signal(sig)
		}
		exits(t, p, 42)
	}
}

func TestEnvoyEntrypointEndsEnvoyAfterTheApplications(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	p := wrapEnvoy(t, m.env(), nil, worker()...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	m.reads(t, 2)
	if !p.Running() {
		t.Fatal("ended while the application runs")
	}
	m.says(200, stopped)
	flipped := time.Now()
	p.Expect("got terminated")
	t.Logf("TERM %s after the application had stopped", time.Since(flipped).Round(time.Millisecond))
	exits(t, p, 55)
}

func TestBadAnswersNeverEndEnvoy(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	p := wrapEnvoy(t, m.env(), nil, worker()...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	for _, bad := range []struct {
		status int
		body   string
	}{
		{200, `{}`},
		{200, `"V4 task metadata handler: unable to get task arn from request"`},
		{200, `{"Containers":[]}`},
		{200, stopped[:strings.Index(stopped, "[")] + `[]}`}, // not even this container
		{200, stopped[:len(stopped)/2]},
		{200, ``},
		{404, stopped},
		{500, stopped},
		{429, `You have reached maximum request limit.`},
	} {
		m.says(bad.status, bad.body)
		m.reads(t, 3)
		if !p.Running() {
			t.Fatalf("ended by status %d, body %.20q", bad.status, bad.body)
		}
	}
	m.says(200, stopped)
	exits(t, p, 55)
}

func TestNoMetadataNeverEndsEnvoy(t *testing.T) {
	t.Parallel()
	gone := newMetadata(t)
	gone.Close()
	for name, env := range map[string][]string{"unset": {"ECS_CONTAINER_METADATA_URI_V4="}, "refused": gone.env()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := wrapEnvoy(t, env, []string{"-kill-grace", "1ms"}, worker()...)
			p.Expect("ready")
			p.Signal(syscall.SIGTERM)
			p.Signal(syscall.SIGUSR1)
			p.Expect("got user defined signal 1")
			calm(t, p, time.Second, 100*time.Millisecond)
			p.Stdin.Close()
			exits(t, p, 0)
		})
	}
}

func TestIgnoredContainersDoNotHoldEnvoy(t *testing.T) {
	t.Parallel()
	routerRuns := task("STOPPED", "STOPPED", "RUNNING")
	for _, c := range []struct {
		name, flag, env string
	}{
		{"flag", "other,router", ""},
		{"environment", "", "router, other"},
		{"prefix in the flag", "other,rout*", ""},
		{"prefix in the environment", "", "other rou*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMetadata(t)
			m.says(200, routerRuns)
			env := append(m.env(), "CONSUL_ECS_IGNORE_CONTAINERS="+c.env)
			p := wrapEnvoy(t, env, []string{"-ignore-containers", c.flag}, worker()...)
			p.Expect("ready")
			p.Signal(syscall.SIGTERM)
			exits(t, p, 55)
		})
	}
	t.Run("neither", func(t *testing.T) {
		t.Parallel()
		m := newMetadata(t)
		m.says(200, routerRuns)
		p := wrapEnvoy(t, m.env(), nil, worker()...)
		p.Expect("ready")
		p.Signal(syscall.SIGTERM)
		m.reads(t, 3)
		if !p.Running() {
			t.Error("ended while the router runs")
		}
	})
}

// AWS's containers end in characters that no user knows before, and ECS stops that of Service
// Connect after Envoy.
func TestContainersOfAWSDoNotHoldEnvoy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ecs-service-connect-oRK9o", "aws-guardduty-agent-mfjGLB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMetadata(t)
			m.says(200, strings.Replace(task("STOPPED", "STOPPED", "RUNNING"), `"router"`, `"`+name+`"`, 1))
			p := wrapEnvoy(t, m.env(), nil, worker()...)
			p.Expect("ready")
			p.Signal(syscall.SIGTERM)
			exits(t, p, 55)
		})
	}
}

// calm waits for a time of that length in which the process uses no more CPU than
// the limit. A busy loop never has one; on a busy machine the first may be none.
func calm(t *testing.T, p *testkit.Process, d, limit time.Duration) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%s with %s of CPU at most", d, limit), func() bool {
		before := cpuTime(t, p.PID)
		<-time.After(d)
		return cpuTime(t, p.PID)-before <= limit
	})
}

// cpuTime returns what the process has used, in steps of 10 ms.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func TestNoBusyLoopWhileEnvoyDrains(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, stopped)
	p := wrapEnvoy(t, m.env(), nil, worker("deaf")...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	p.Expect("got terminated")
	// 1 %; the old program used 1 s of 1 s. One clock tick may fall anywhere.
	calm(t, p, 2*time.Second, 20*time.Millisecond)
	p.Stdin.Close()
	exits(t, p, 0)
}

func TestAllSignalsReachTheChild(t *testing.T) {
	t.Parallel()
	p := wrapEnvoy(t, nil, nil, worker("counts")...)
	p.Expect("ready")
	five := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
	for range 100 {
		want := map[string]bool{}
		for _, sig := range five {
			p.Signal(sig)
			want["got "+sig.String()] = true
		}
		for range five {
			delete(want, p.Line())
		}
		if len(want) > 0 {
			t.Fatalf("lost: %v", want)
		}
	}
	p.Stdin.Close()
	exits(t, p, 0)
}

// The reads begin with TERM, so that an exit which waits for the end of one takes their
// timeout from there. On a busy machine an exit that does not may take that long, too, but
// not every time. The very moment is proven in entrypoint.
func TestHangingMetadataDoesNotHoldTheExit(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	hanging := make(chan struct{}, 100)
	m.does(func(_ http.ResponseWriter, r *http.Request) {
		hanging <- struct{}{}
		<-r.Context().Done()
	})
	var took []time.Duration
	for range 20 {
		p := wrapEnvoy(t, m.env(), nil, worker()...)
		p.Expect("ready")
		start := time.Now()
		p.Signal(syscall.SIGTERM)
		<-hanging
		p.Signal(syscall.SIGINT)
		exits(t, p, 42)
		took = append(took, time.Since(start))
		if took[len(took)-1] < awsutil.MetadataTimeout {
			return
		}
	}
	t.Errorf("took %s to end during a hanging read", took)
}

// The program that crashed is started again, with the same arguments, and gets signals.
func TestEnvoyEntrypointStartsACrashedChildAgain(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	p := wrapEnvoy(t, m.env(), nil, worker("crashes")...)
	for range 3 {
		p.Expect("ready")
		p.Signal(syscall.SIGUSR2)
		p.Expect("got user defined signal 2")
	}
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	m.says(200, stopped)
	p.Expect("got terminated")
	exits(t, p, 55)
}

func TestEnvoyEntrypointEndsWithAChildThatCannotRun(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := wrapEnvoy(t, nil, nil, worker("fails")...)
	exits(t, p, 9)
	ready := 0
	for _, line := range p.AllGone() {
		if line == "ready" {
			ready++
		}
	}
	if ready != 4 {
		t.Errorf("started %d times, want 4", ready)
	}
	if took := time.Since(start); took < 1600*time.Millisecond {
		t.Errorf("ended after %s, want pauses of 1.6 s", took)
	}
}

// A slow child may get KILL before it can report TERM; with more
// grace it says so.
func TestEnvoyEntrypointKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, stopped)
	for _, grace := range []string{"100ms", "1s", "10s"} {
		p := wrapEnvoy(t, m.env(), []string{"-kill-grace", grace}, worker("deaf")...)
		p.Expect("ready")
		p.Signal(syscall.SIGTERM)
		exits(t, p, 137)
		if slices.Contains(p.AllGone(), "got terminated") {
			return
		}
	}
	t.Error("killed without a TERM")
}

func TestEnvoyEntrypointDrainsAtTheAddressOfTheBootstrap(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, strings.Replace(running, `"DesiredStatus":"STOPPED"`, `"DesiredStatus":"RUNNING"`, 1))
	drained := make(chan string, 10)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drained <- r.Method + " " + r.URL.RequestURI()
		http.Error(w, "no", http.StatusInternalServerError) // a failure is no obstacle
	}))
	defer admin.Close()
	var port int
	fmt.Sscanf(admin.Listener.Addr().String(), "127.0.0.1:%d", &port)
	bootstrap := filepath.Join(t.TempDir(), "envoy-bootstrap.json")
	json := fmt.Sprintf(`{"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":%d}}}}`, port)
	if err := os.WriteFile(bootstrap, []byte(json), 0o600); err != nil {
		t.Fatal(err)
	}
	p := wrapEnvoy(t, m.env(), nil, worker("--config-path", bootstrap)...)
	p.Expect("ready")
	m.reads(t, 1)
	if len(drained) > 0 {
		t.Error("drained while the task runs")
	}
	m.says(200, running) // ECS stops the task; TERM comes later
	const want = "POST /drain_listeners?inboundonly&graceful&skip_exit"
	for _, when := range []string{"task stopping", "TERM"} {
		if when == "TERM" {
			p.Signal(syscall.SIGTERM)
		}
		select {
		case got := <-drained:
			if got != want {
				t.Errorf("%s: asked %q, want %q", when, got, want)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("%s: not drained", when)
		}
	}
	m.says(200, stopped)
	exits(t, p, 55)
}
