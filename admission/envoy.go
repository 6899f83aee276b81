package admission

import (
	"cmp"
	"path"
	"strconv"

	"github.com/meshtask/consul-ecs/workload"
)

const (
	// defaultConcurrency is how many worker threads Envoy has, as below consul-dataplane. Without
	// a number it has one for each CPU of the machine.
	defaultConcurrency = 2
	// maxConcurrency limits what the mesh file and the annotation may ask for.
	maxConcurrency = 1024
	// defaultLogLevel is Envoy's, unless the configuration has one.
	defaultLogLevel = "warning"
)

// envoyLevels are Envoy's log levels by those of the configuration.
var envoyLevels = map[string]string{"TRACE": "trace", "DEBUG": "debug", "INFO": "info", "WARN": "warning",
	"ERROR": "error"}

// envoyCommand returns Envoy's command line. It gives Envoy what consul-dataplane gives it, see
// docs/TRAFFIC.md: no hot restart, whose socket all containers of a task would share, a number of
// threads, and 30 s for the connections of a listener that Consul has changed.
func envoyCommand(dir, level string, concurrency int) []string {
	return []string{
		"envoy", "--config-path", path.Join(dir, workload.FileBootstrap),
		"--log-level", cmp.Or(envoyLevels[level], defaultLogLevel),
		"--disable-hot-restart",
		"--concurrency", strconv.Itoa(concurrency),
		"--drain-time-s", "30",
		"--drain-strategy", "immediate",
	}
}

// dataplaneCommand returns consul-dataplane's command line. It has a default for the number of
// Envoy's threads itself.
func dataplaneCommand(dir string, concurrency int) []string {
	command := []string{"consul-dataplane", "-config-file", path.Join(dir, workload.FileDataplane)}
	if concurrency != defaultConcurrency {
		command = append(command, "-envoy-concurrency", strconv.Itoa(concurrency))
	}
	return command
}

// proxyCommand returns the command line of the task's proxy.
func (b sidecarBuilder) proxyCommand() []string {
	concurrency := cmp.Or(b.mesh.settings.EnvoyConcurrency, defaultConcurrency)
	if n, given := b.annotations.number(annotationConcurrency, 1, maxConcurrency); given {
		concurrency = n
	}
	if !b.cfg.Direct() {
		return dataplaneCommand(b.cfg.BootstrapDir, concurrency)
	}
	level, _ := b.mesh.configuration.Get("logLevel").Text() // that of t.cfg is never absent
	return envoyCommand(b.cfg.BootstrapDir, level, concurrency)
}
