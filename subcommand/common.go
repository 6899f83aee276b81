package subcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/taskdef"
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
	// releasePause is longer than most starts take.
	releasePause = 2 * time.Second
)

// untilSignal runs a command with a context that TERM or INT ends.
func untilSignal(run func(context.Context, *cli.Invocation) error) func(context.Context, *cli.Invocation) error {
	return func(ctx context.Context, inv *cli.Invocation) error {
		ctx, stop := cli.SignalContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return run(ctx, inv)
	}
}

// service runs a command that only TERM or INT ends, which is no failure.
func service(run func(context.Context, *cli.Invocation) error) func(context.Context, *cli.Invocation) error {
	return untilSignal(func(ctx context.Context, inv *cli.Invocation) error {
		err := run(ctx, inv)
		if ctx.Err() == nil {
			return err
		}
		inv.Log.Info("stopped", logkey.Reason, context.Cause(ctx))
		return nil
	})
}

// limitRuntime makes a process that mostly waits cheap: the garbage collector's
// target, and one processor, so that no wake-up starts a search for work on the
// others. GOGC and GOMAXPROCS in the environment win. releaseCode frees what only the start
// needed.
func limitRuntime(inv *cli.Invocation, gcPercent int) {
	if inv.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if inv.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	releaseAfter(releasePause)
}

// releaseAfter calls releaseCode after pauses that become longer: a start may wait for other
// containers for minutes.
func releaseAfter(pause time.Duration) {
	time.AfterFunc(pause, func() {
		_ = releaseCode() // without it there is only more memory in use
		releaseAfter(6 * pause)
	})
}

// releaseCode takes the program's code and constants out of this process's resident memory (RSS),
// of which most is needed by the start alone: 5 of 17 MB stay away. The pages stay in the page cache,
// where the kernel may reclaim them, and come back when they are used.
func releaseCode() error {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, m := range releasable(string(smaps)) {
		_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
		if errno != 0 {
			return fmt.Errorf("release the program's code: %w", errno)
		}
	}
	return nil
}

// mapping is a part of a process's memory.
type mapping struct{ start, end uintptr }

// releasable returns the mappings of the program's file, the first in /proc/PID/smaps, that are
// read only and have no page that was written, as by a dynamic linker: it has no other copy.
func releasable(smaps string) (found []mapping) {
	var m mapping
	var mode, path, program string
	written := false
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(fields[0], ":") { // a mapping begins
			_, _ = fmt.Sscanf(line, "%x-%x %s", &m.start, &m.end, &mode)
			path, written = strings.Join(fields[5:], " "), false
			program = cmp.Or(program, path)
			continue
		}
		switch fields[0] {
		case "Anonymous:":
			written = fields[1] != "0"
		case "Swap:":
			if written = written || fields[1] != "0"; !written && path == program && !strings.Contains(mode, "w") {
				found = append(found, m)
			}
		}
	}
	return found
}

func logLevelFlag(fs *flag.FlagSet, level *string) {
	fs.StringVar(level, "log-level", "INFO", "TRACE, DEBUG, INFO, WARN or ERROR")
}

// setNames reads a comma-separated list.
func setNames(list *[]string) func(string) error {
	return func(s string) error {
		*list = splitNames(s)
		return nil
	}
}

// appendTo collects a repeated flag.
func appendTo(list *[]string) func(string) error {
	return func(s string) error {
		*list = append(*list, s)
		return nil
	}
}

func stopTimeoutFlag(fs *flag.FlagSet, stop *time.Duration) {
	fs.DurationVar(stop, "stop-timeout", taskdef.DefaultStopTimeout*time.Second,
		"the container's stopTimeout, in which everything after TERM has to be done")
}

func checkStopTimeout(stop time.Duration) error {
	return usageErrorIf(stop < minStopTimeout, "-stop-timeout %s: want at least %s", stop, minStopTimeout)
}

// checkTimeouts checks -stop-timeout and the -start-timeout of a gate.
func checkTimeouts(stop, start time.Duration) error {
	return errors.Join(checkStopTimeout(stop), usageErrorIf(start < 0, "-start-timeout %s: want 0 or more", start))
}

// usageErrorIf returns a usage error if the condition holds.
func usageErrorIf(condition bool, format string, args ...any) error {
	if !condition {
		return nil
	}
	return exit.Usagef(format, args...)
}

// ignoreContainersFlag declares -ignore-containers. Usage is what the containers are for the
// command, with the word names in backquotes.
func ignoreContainersFlag(fs *flag.FlagSet, list *workload.Ignored, usage string) {
	fs.Func("ignore-containers", "comma-separated "+usage+"; name* is each whose name begins so",
		func(s string) (err error) {
			*list, err = workload.ParseIgnored(s)
			return err
		})
}

// addIgnoredContainers adds the containers of the environment to those of -ignore-containers.
func addIgnoredContainers(inv *cli.Invocation, list *workload.Ignored) error {
	more, err := workload.ParseIgnored(inv.Getenv(ignoreContainersEnv))
	*list = append(*list, more...)
	return usageErrorIf(err != nil, "%s: %w", ignoreContainersEnv, err)
}

// splitNames splits a comma-separated list and drops blanks.
func splitNames(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// readInput reads a file, or standard input for -.
func readInput(inv *cli.Invocation, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(inv.Stdin)
	}
	return os.ReadFile(file)
}

// writeJSON writes each value as one line.
func writeJSON[T any](w io.Writer, values ...T) error {
	return encode(w, "", values...)
}

// writeIndented writes a value for people and programs.
func writeIndented(w io.Writer, v any) error {
	return encode(w, "  ", v)
}

func encode[T any](w io.Writer, indent string, values ...T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
