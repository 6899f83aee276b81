package subcommand

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// TestUsersRuntimeLimitsAreKept does not run in parallel: the limits belong to the whole
// process.
func TestUsersRuntimeLimitsAreKept(t *testing.T) {
	const users, processors = 321, 3
	percent, before := debug.SetGCPercent(users), runtime.GOMAXPROCS(processors)
	defer func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(before)
	}()
	env := map[string]string{"GOGC": "321", "GOMAXPROCS": "3"}
	for name, args := range map[string][]string{
		"app-entrypoint":    nil, // without a command
		"envoy-entrypoint":  nil,
		"client-entrypoint": {"-stop-timeout=0s"},
		"health-sync":       nil, // without a configuration
	} {
		var stdout, stderr bytes.Buffer
		app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{name: commands()[name]}}
		cli.Main(app, append([]string{name}, args...), func(k string) string { return env[k] }, strings.NewReader(""),
			&stdout, &stderr)
		if got := debug.SetGCPercent(users); got != users {
			t.Errorf("%s changed the garbage collector's target to %d: %s", name, got, &stderr)
		}
		if got := runtime.GOMAXPROCS(processors); got != processors {
			t.Errorf("%s changed the processors to %d: %s", name, got, &stderr)
		}
	}
}

func TestIgnoredContainersAreChecked(t *testing.T) {
	t.Parallel()
	const wrong = `"a*b": a * may only be at the end, after the beginning of a name; "*" would ignore every container`
	for name, args := range map[string][]string{
		"envoy-entrypoint": {"true"}, "health-sync": nil, "client-entrypoint": nil, "token-receive": nil,
	} {
		flag := append([]string{name, "-ignore-containers", "a*b,*"}, args...)
		if code, stderr := runCommand(nil, flag...); code != 1 || !strings.Contains(stderr, wrong) {
			t.Errorf("%s with the flag: exit code %d, %s", name, code, stderr)
		}
		env := map[string]string{"CONSUL_ECS_IGNORE_CONTAINERS": "a*b *"}
		if code, stderr := runCommand(env, append([]string{name}, args...)...); code != 1 ||
			!strings.Contains(stderr, "CONSUL_ECS_IGNORE_CONTAINERS: "+wrong) {
			t.Errorf("%s with the variable: exit code %d, %s", name, code, stderr)
		}
	}
}

func TestProgramRunsOnAfterItsCodeIsReleased(t *testing.T) {
	t.Parallel()
	for range 3 {
		if err := releaseCode(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnwrittenCodeOfTheProgramIsReleased(t *testing.T) {
	t.Parallel()
	var smaps strings.Builder
	for _, m := range []struct{ at, written, swapped string }{
		{"00400000-00bcd000 r-xp 00000000 fe:00 247026 /consul-ecs/consul-ecs", "0", "0"},
		{"00bcd000-013d0000 r--p 007cd000 fe:00 247026 /consul-ecs/consul-ecs", "0", "0"},
		{"013d0000-013d1000 r--p 00fd0000 fe:00 247026 /consul-ecs/consul-ecs", "4", "0"},
		{"013d1000-013d2000 r--p 00fd1000 fe:00 247026 /consul-ecs/consul-ecs", "0", "4"},
		{"013d2000-01446000 rw-p 00fd2000 fe:00 247026 /consul-ecs/consul-ecs", "0", "0"},
		{"c000000000-c000400000 rw-p 00000000 00:00 0", "2048", "0"},
		{"7f0000000000-7f0000100000 r-xp 00000000 fe:00 11 /lib/libc.so.6", "0", "0"},
		{"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]", "0", "0"},
	} {
		fmt.Fprintf(&smaps, "%s\nRss:  8 kB\nAnonymous:  %s kB\nSwap:  %s kB\nVmFlags: rd ex mr\n", m.at, m.written,
			m.swapped)
	}
	want := []mapping{{0x400000, 0xbcd000}, {0xbcd000, 0x13d0000}}
	if got := releasable(smaps.String()); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
