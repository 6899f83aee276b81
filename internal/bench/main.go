package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes, as in the product.
const (
	exitOK      = 0
	exitUsage   = 1
	exitUnknown = 3 // something could not be measured
)

// figureLimit bounds one figure, so that a hanging program ends the run.
const figureLimit = 10 * time.Minute

// figure is one group of measurements with its own setup.
type figure struct {
	name, about string
	run         func(*fixture) ([]row, error)
}

// figures returns all figures, the quick ones first.
func figures() []figure {
	return []figure{
		{"size", "size of the program", sizeFigure},
		{"start", "mesh-init from start to exit", meshInitFigure},
		{"late", "mesh-init when agent, servers, CA file or auth method are late", lateFigure},
		{"health", "ECS health change to Consul check", healthFigure},
		{"idle", "memory and CPU of health-sync", idleFigure},
		{"stop", "application stopped to Envoy's TERM", stopFigure},
		{"drain", "memory of envoy-entrypoint, CPU while Envoy drains", drainFigure},
		{"traffic", "Envoy listening to first request through the mesh", trafficFigure},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == envoyRole {
		os.Exit(playEnvoy(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	only string
	runs int
	json bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.only, "only", "", "comma-separated `names` of figures; all without it")
	fs.IntVar(&o.runs, "n", 0, "`runs` of each repeated measurement (default: each figure's own)")
	fs.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		help(stdout, fs)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v; -help lists what there is\n", err)
		return exitUsage
	}
	chosen, err := choose(figures(), o.only)
	if err != nil || fs.NArg() > 0 || o.runs < 0 {
		fmt.Fprintln(stderr, "bench:", errors.Join(err, usage(fs.Args(), o.runs)))
		return exitUsage
	}
	rows, err := measure(ctx, chosen, o.runs, stderr)
	if printErr := report(stdout, rows, o.json); printErr != nil {
		err = errors.Join(err, printErr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench: not everything could be measured:", err)
		return exitUnknown
	}
	return exitOK
}

// help lists the flags and the figures.
func help(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintln(w, "Usage: bench [flags]\n\nMeasures each figure next to a floor or a peer of the same run.\n\nFlags:")
	fs.SetOutput(w)
	fs.PrintDefaults()
	fmt.Fprintln(w, "\nFigures:")
	for _, f := range figures() {
		fmt.Fprintf(w, "  %-10s%s\n", f.name, f.about)
	}
}

func usage(args []string, runs int) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: bench takes flags only", args[0])
	}
	if runs < 0 {
		return fmt.Errorf("-n %d: want at least 1", runs)
	}
	return nil
}

func names(fs []figure) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.name)
	}
	return out
}

// choose picks figures by name; no names are all of them.
func choose(all []figure, only string) ([]figure, error) {
	if only == "" {
		return all, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %q: want some of %s", name, strings.Join(names(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// measure runs the figures one after the other, so that they do not disturb
// each other. A figure that fails does not keep the others from running.
func measure(ctx context.Context, chosen []figure, runs int, progress io.Writer) ([]row, error) {
	h, err := newHarness(ctx, runs, progress)
	if err != nil {
		return nil, err
	}
	defer h.close()
	var rows []row
	var errs []error
	for i, f := range chosen {
		start := time.Now()
		h.say("[%d/%d] %s: %s", i+1, len(chosen), f.name, f.about)
		got, err := h.measure(ctx, f)
		rows = append(rows, got...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
			h.say("  not measured: %v", err)
		}
		h.say("  took %.0f s", time.Since(start).Seconds())
		if ctx.Err() != nil {
			break
		}
	}
	return rows, errors.Join(errs...)
}

func report(w io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(load), " ")
	fmt.Fprintf(w, "%s %s/%s, %d CPUs, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), minute)
	return writeTable(w, rows)
}
