package subcommand

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/supervise"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	ignoreContainersEnv = "CONSUL_ECS_IGNORE_CONTAINERS"
	// minStopTimeout is the shortest that leaves time for a write and a logout.
	minStopTimeout = time.Second
	// wrapperGCPercent makes the collector start at 1 MB instead of 4 MB of
	// garbage. A wrapper runs in every task and does next to nothing, so memory
	// is what it costs.
	wrapperGCPercent = 25
)

// limitRuntime makes a process that mostly waits cheap: the garbage collector's
// target, and one processor, so that no wake-up starts a search for work on the
// others. GOGC and GOMAXPROCS in the environment win.
func limitRuntime(inv *cli.Invocation, gcPercent int) {
	if inv.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if inv.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

func logLevelFlag(fs *flag.FlagSet, level *string) {
	fs.StringVar(level, "log-level", "INFO", "TRACE, DEBUG, INFO, WARN or ERROR")
}

func stopTimeoutFlag(fs *flag.FlagSet, stop *time.Duration) {
	fs.DurationVar(stop, "stop-timeout", workload.DefaultStopTimeout, "the container's stopTimeout, in which everything after TERM has to be done")
}

func checkStopTimeout(stop time.Duration) error {
	if stop < minStopTimeout {
		return exit.Usagef("-stop-timeout %s: want at least %s", stop, minStopTimeout)
	}
	return nil
}

// checkTimeouts checks -stop-timeout and -start-timeout.
func checkTimeouts(stop, start time.Duration) error {
	if err := checkStopTimeout(stop); err != nil {
		return err
	}
	return checkStartTimeout(start)
}

// ignored are the containers of -ignore-containers and of the environment.
func ignored(inv *cli.Invocation, names string) []string {
	return append(splitNames(names), splitNames(inv.Getenv(ignoreContainersEnv))...)
}

// splitNames splits a comma-separated list and drops blanks.
func splitNames(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// runWrapped waits at the gate, if there is one, starts the command given by the
// arguments and passes it to control, whose result is the exit code. Signals are
// queued from here on, so that one that arrives before the child's start is not
// lost.
func runWrapped(inv *cli.Invocation, level string, gate *meshinit.Gate, control func(*supervise.Process, <-chan os.Signal) int) error {
	signals := supervise.Subscribe()
	defer signals.Stop()
	limitRuntime(inv, wrapperGCPercent)
	if err := inv.UseLogger(level, false); err != nil {
		return err
	}
	if len(inv.Args) == 0 {
		return exit.Usagef("command is required: name the program to run after the flags")
	}
	if err := pass(gate, inv, signals.C()); err != nil {
		return err
	}
	child, err := supervise.Start(supervise.Command{Args: inv.Args}, inv.Log)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	if code := control(child, signals.C()); code != exit.CodeOK {
		return &exit.CodeError{Code: code}
	}
	return nil
}
