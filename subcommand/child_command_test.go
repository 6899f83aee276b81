package subcommand

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// starting is a task whose mesh-init runs.
var starting = strings.Replace(task("RUNNING", "RUNNING", "STOPPED"), `"KnownStatus":"STOPPED","ExitCode":0`,
	`"KnownStatus":"RUNNING"`, 1)

// sharedVolume is the volume of a task whose mesh-init runs.
type sharedVolume struct {
	*metadata
	t   *testing.T
	dir string
}

func newSharedVolume(t *testing.T) sharedVolume {
	m := newMetadata(t)
	m.says(200, starting)
	return sharedVolume{metadata: m, t: t, dir: t.TempDir()}
}

func (v sharedVolume) status(outcome, message string) {
	v.t.Helper()
	doc := fmt.Sprintf(`{"task":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8","outcome":%q,"message":%q}`, outcome, message)
	if err := os.WriteFile(filepath.Join(v.dir, workload.FileStatus), []byte(doc), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// gated returns the wrappers that wait, with their flags and an argument of the command
// that makes them wait.
func (v sharedVolume) gated(listener string) map[string][]string {
	return map[string][]string{
		"envoy-entrypoint": append([]string{"envoy-entrypoint"},
			append(worker(), "--config-path", filepath.Join(v.dir, workload.FileBootstrap))...),
		"consul-dataplane": append([]string{"envoy-entrypoint"},
			append(worker(), "-config-file", filepath.Join(v.dir, workload.FileDataplane))...),
		"app-entrypoint": append([]string{"app-entrypoint", "-shutdown-delay", "1h", "-dir", v.dir, "-await-proxy",
			listener}, worker()...),
	}
}

func TestWrappersStartTheirProgramWhenTheGateOpens(t *testing.T) {
	t.Parallel()
	for name := range (sharedVolume{}).gated("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newSharedVolume(t)
			listener := testkit.ReservePort(t)
			p := consulECS(t, v.env(), v.gated(listener.String())[name]...)
			v.reads(t, 2)
			if line, ok := p.Try(); ok {
				t.Fatalf("started before the gate was open: %q", line)
			}
			v.status("ready", "")
			if name == "app-entrypoint" {
				v.reads(t, 1) // mesh-init's success alone does not start the application
				if line, ok := p.Try(); ok {
					t.Fatalf("started before the proxy: %q", line)
				}
				listener.Listen()
			}
			p.Expect("ready")
			p.Stdin.Close()
			exits(t, p, 0)
		})
	}
}

func TestWrappersEndWithMeshInitsMessage(t *testing.T) {
	t.Parallel()
	v := newSharedVolume(t)
	v.status("failed", "log in: the role is not trusted")
	for name, args := range v.gated(testkit.ReservePort(t).String()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := testkit.SelfArgs("consul-ecs", args...)
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), v.env()...)
			output, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 3 ||
				!strings.Contains(string(output), "log in: the role is not trusted") {
				t.Errorf("exit code %d:\n%s", code, output)
			}
		})
	}
}

func TestSignalEndsTheWaitOfAWrapper(t *testing.T) {
	t.Parallel()
	for name := range (sharedVolume{}).gated("") {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(fmt.Sprint(name, " ", sig), func(t *testing.T) {
				t.Parallel()
				v := newSharedVolume(t)
				p := consulECS(t, v.env(), v.gated(testkit.ReservePort(t).String())[name]...)
				v.reads(t, 2)
				p.Signal(syscall.SIGUSR1) // dropped: there is no program yet
				p.Signal(sig)
				exits(t, p, 3)
			})
		}
	}
}

func TestStopSignalEndsTheWaitOfAnApplication(t *testing.T) {
	t.Parallel()
	v := newSharedVolume(t)
	args := slices.Insert(v.gated(testkit.ReservePort(t).String())["app-entrypoint"], 1, "-stop-signal", "WINCH")
	p := consulECS(t, v.env(), args...)
	v.reads(t, 2)
	p.Signal(syscall.SIGUSR1) // dropped: there is no program yet
	p.Signal(syscall.SIGWINCH)
	exits(t, p, 3)
}

func TestHealthSyncEndsWithMeshInit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome, message string
		signal           bool
		code             int
	}{
		"failure":          {"failed", "the role is not trusted", false, 3},
		"TERM before that": {"starting", "log in", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newSharedVolume(t)
			v.status(c.outcome, c.message)
			env := append(v.env(), "CONSUL_HTTP_ADDR=127.0.0.1:1",
				fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"service":{"name":"web","port":1},"healthSyncContainers":["app"]}`, v.dir))
			p := consulECS(t, env, "health-sync")
			if c.signal {
				v.reads(t, 2)
				p.Signal(syscall.SIGTERM)
			}
			exits(t, p, c.code)
		})
	}
}

// Definitions without mesh-init, and wrappers outside of ECS, start at once.
func TestWrappersWithoutAGateStartAtOnce(t *testing.T) {
	t.Parallel()
	v := newSharedVolume(t)
	for name, c := range map[string]struct {
		env  []string
		args []string
	}{
		"another bootstrap": {v.env(), append([]string{"envoy-entrypoint"},
			append(worker(), "-c", "/etc/envoy.json")...)},
		"no task metadata": {[]string{"ECS_CONTAINER_METADATA_URI_V4="}, v.gated("")["envoy-entrypoint"]},
		"start timeout 0":  {v.env(), slices.Insert(v.gated("")["envoy-entrypoint"], 1, "-start-timeout", "0")},
		"application, timeout 0": {v.env(), slices.Insert(v.gated("127.0.0.1:1")["app-entrypoint"], 1, "-start-timeout",
			"0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := consulECS(t, c.env, c.args...)
			p.Expect("ready")
			p.Stdin.Close()
			exits(t, p, 0)
		})
	}
	for _, command := range []string{"envoy-entrypoint", "app-entrypoint", "health-sync"} {
		p := consulECS(t, v.env(), command, "-start-timeout", "-1s")
		exits(t, p, 1)
	}
}
