package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// fetched is an answer from outside of the run.
type fetched struct {
	at   time.Time
	text string
	err  error
}

// From outside a service is reached by one port while its tasks are replaced.
func TestPublishedServiceIsReachedDuringADeployment(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	definition := func(name string) string {
		return `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
			"containerDefinitions": [{"name": "app", "image": "kid", "command": ["named", ":80", "` + name + `"]}]}`
	}
	dir := given{"web.json": definition("old"), "web-2.json": definition("new"), "scenario.yaml": `name: published
healthyAfter: 1s
images:
  kid: {programs: {/bin/kid: "${kid}"}, entrypoint: [kid], env: [GORACE=atexit_sleep_ms=0]}
  consul: {programs: {/bin/consul: "${kid}"}}
consul: {image: consul}
services: {web: {definition: web.json, count: 2}}
publish: ["` + address + `:web:80"]
steps:
- start: [web]
- await: {service: web, steady: true, within: 60s}
- deploy: {service: web, definition: web-2.json}
- await: {service: web, steady: true, within: 60s}
- stop: [web]
`}.write(t)
	ctx, end := context.WithCancel(t.Context())
	var answers []fetched
	var fetching sync.WaitGroup
	fetching.Go(func() { answers = fetchUntil(ctx, "http://"+address) })
	code, report, events := runReport(t, []string{"-var", "kid=" + self}, dir)
	end()
	fetching.Wait()
	if code != 0 {
		t.Fatalf("exit %d: %q", code, report.Failures)
	}
	var begin, stop time.Time
	for _, e := range events {
		switch {
		case e.Kind == "step_end" && e.Step == 2:
			begin = e.Time
		case e.Kind == "step_begin" && e.Step == 5:
			stop = e.Time
		}
	}
	counts := map[string]int{}
	for _, a := range answers {
		counts[a.text]++
		if a.at.Before(begin) || a.at.After(stop.Add(-time.Second)) {
			continue
		}
		if a.err != nil {
			t.Errorf("%v after the deployment began: %v", a.at.Sub(begin), a.err)
		}
	}
	if counts["old"] == 0 || counts["new"] == 0 {
		t.Errorf("answers: got %v, want some of the old tasks and some of the new ones", counts)
	}
}

// fetchUntil gets a URL again and again, each time with a new connection.
func fetchUntil(ctx context.Context, url string) (all []fetched) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 15 * time.Second}
	for ctx.Err() == nil {
		got := fetched{at: time.Now()}
		res, err := client.Get(url)
		if got.err = err; err == nil {
			var body []byte
			body, got.err = io.ReadAll(res.Body)
			res.Body.Close()
			got.text = string(body)
		}
		all = append(all, got)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return all
}

// A port that is taken is named with its holder, before anything starts.
func TestPublishedPortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := given{"web.json": `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
		"cpu": "256", "memory": "512", "containerDefinitions": [{"name": "app", "image": "x", "command": ["true"]}]}`}.write(t)
	state := filepath.Join(dir, "state")
	got := call(t, "run", "-dir", state, "-image", "x=host", "-publish", fmt.Sprintf("%s:web:80", l.Addr()),
		filepath.Join(dir, "web.json"))
	testkit.Equal(t, "exit status", got.code, 3)
	for _, want := range []string{
		fmt.Sprintf("listen at %s: bind: address already in use: process ", l.Addr()),
		fmt.Sprintf(" (command.test) that listens on %s has it", l.Addr()),
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr: got %q, want %q in it", got.stderr, want)
		}
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the run has made its directory")
	}
}

// A task reaches the addresses outside that are named, and no others.
func TestTaskReachesNamedAddressesOutside(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "rows")
	}))
	defer database.Close()
	address := database.Listener.Addr().String()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := given{
		"job.json": `{"family": "job", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
			"cpu": "256", "memory": "512", "containerDefinitions": [{"name": "app", "image": "kid", "command": [
			"fetch", "http://db:5432/", "http://` + address + `/", "http://other:5432/"]}]}`,
		"localecs.yaml": `images:
  kid: {programs: {/bin/kid: "${kid}"}, entrypoint: [kid], env: [GORACE=atexit_sleep_ms=0]}
`,
	}.write(t)
	got := call(t, "run", "-dir", t.TempDir(), "-var", "kid="+self, "-outside", "db:5432="+address,
		filepath.Join(dir, "job.json"))
	testkit.Equal(t, "exit status", got.code, 0)
	for _, want := range []string{"db:5432 leads out to " + address, "http://db:5432/: rows",
		"http://" + address + "/: failed", "http://other:5432/: failed"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %q, want %q in it", got.stdout, want)
		}
	}
}

// A published port leads to a task in the host's network, and out of a user namespace, too.
func TestPublishedPortInEachNetwork(t *testing.T) {
	t.Parallel()
	definition := `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
		"memory": "512", "containerDefinitions": [{"name": "app", "image": "hello", "stopTimeout": 2,
		"linuxParameters": {"initProcessEnabled": true}, "command": ["/hello", "api", "0.0.0.0:18099"]}]}`
	for name, c := range map[string]struct{ network, user string }{
		"host": {"host", ""}, "without root": {"awsvpc", "none"}, "without root, host": {"host", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			file := filepath.Join(testkit.PublicDir(t), "web.json")
			if err := os.WriteFile(file, []byte(definition), 0o644); err != nil {
				t.Fatal(err)
			}
			address := freeAddress(t)
			args := []string{filepath.Join(d.dir, "localecs"), "run", "-network", c.network, "-dir", d.state,
				"-image", "hello=" + filepath.Join(d.dir, "hello") + ":/hello", "-publish", address + ":web:18099", file}
			if c.user != "" {
				args = testkit.AsUser(t, "", args...)
			}
			p := testkit.StartProcess(t, testkit.ProcessOptions{Env: []string{"PATH=" + os.Getenv("PATH")}}, args...)
			var answer fetched
			testkit.Eventually(t, "an answer at the published port", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				answer = fetchUntil(ctx, "http://"+address)[0]
				return answer.err == nil
			})
			p.Signal(syscall.SIGINT)
			testkit.Equal(t, "exit status", p.Wait(), 0)
		})
	}
}

// freeAddress returns an address of this machine that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}
