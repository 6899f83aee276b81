package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// File is the part of a compose file that tasks need.
type File struct {
	Services map[string]Service  `yaml:"services"`
	Networks map[string]Network  `yaml:"networks"`
	Volumes  map[string]struct{} `yaml:"volumes,omitempty"`

	// Warnings are settings of the definitions that the file cannot express, each with its path.
	Warnings []string `yaml:"-"`
}

// Service is a container.
type Service struct {
	Image       string                       `yaml:"image"`
	Entrypoint  []string                     `yaml:"entrypoint,omitempty"`
	Command     []string                     `yaml:"command,omitempty"`
	User        string                       `yaml:"user,omitempty"`
	WorkingDir  string                       `yaml:"working_dir,omitempty"`
	Init        bool                         `yaml:"init,omitempty"`
	NetworkMode string                       `yaml:"network_mode,omitempty"`
	Networks    map[string]NetworkAttachment `yaml:"networks,omitempty"`
	PID         string                       `yaml:"pid,omitempty"`
	IPC         string                       `yaml:"ipc,omitempty"`
	DependsOn   map[string]Dependency        `yaml:"depends_on,omitempty"`
	Environment map[string]string            `yaml:"environment,omitempty"`
	Volumes     []string                     `yaml:"volumes,omitempty"`
	HealthCheck *HealthCheck                 `yaml:"healthcheck,omitempty"`
	Restart     string                       `yaml:"restart,omitempty"`
	StopGrace   string                       `yaml:"stop_grace_period,omitempty"`
	ReadOnly    bool                         `yaml:"read_only,omitempty"`
	Privileged  bool                         `yaml:"privileged,omitempty"`
	TTY         bool                         `yaml:"tty,omitempty"`
	StdinOpen   bool                         `yaml:"stdin_open,omitempty"`
	CapAdd      []string                     `yaml:"cap_add,omitempty"`
	CapDrop     []string                     `yaml:"cap_drop,omitempty"`
	Devices     []string                     `yaml:"devices,omitempty"`
	Tmpfs       []string                     `yaml:"tmpfs,omitempty"`
	ShmSize     string                       `yaml:"shm_size,omitempty"`
	Sysctls     map[string]string            `yaml:"sysctls,omitempty"`
	Ulimits     map[string]Ulimit            `yaml:"ulimits,omitempty"`
	CPUShares   int                          `yaml:"cpu_shares,omitempty"`
	MemLimit    string                       `yaml:"mem_limit,omitempty"`
	MemReserved string                       `yaml:"mem_reservation,omitempty"`
	Labels      map[string]string            `yaml:"labels,omitempty"`
}

// Dependency is a condition for the start of a service.
type Dependency struct {
	Condition string `yaml:"condition"`
}

// HealthCheck has durations such as 5s.
type HealthCheck struct {
	Test          []string `yaml:"test"`
	Interval      string   `yaml:"interval,omitempty"`
	Timeout       string   `yaml:"timeout,omitempty"`
	Retries       int      `yaml:"retries,omitempty"`
	StartPeriod   string   `yaml:"start_period,omitempty"`
	StartInterval string   `yaml:"start_interval,omitempty"`
}

// Ulimit is a soft and a hard limit; -1 is none.
type Ulimit struct {
	Soft int `yaml:"soft"`
	Hard int `yaml:"hard"`
}

// NetworkAttachment is a service's address in a network.
type NetworkAttachment struct {
	IPv4Address string `yaml:"ipv4_address,omitempty"`
}

// Network is one of the project's.
type Network struct {
	// IPAM has the subnets, each {"subnet": CIDR}, by the key "config".
	IPAM map[string][]map[string]string `yaml:"ipam,omitempty"`
}

// YAML returns the file, after a comment with the header and the warnings.
func (f File) YAML(header string) ([]byte, error) {
	body, err := yaml.MarshalWithOptions(f, yaml.IndentSequence(true), yaml.CustomMarshaler(quote))
	if err != nil {
		return nil, fmt.Errorf("write compose file: %w", err)
	}
	var top strings.Builder
	for line := range strings.Lines(header) {
		top.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	if len(f.Warnings) > 0 {
		top.WriteString("#\n# Settings of the task definitions that compose cannot express:\n")
		for _, w := range f.Warnings {
			top.WriteString("#   " + strings.Join(strings.Fields(w), " ") + "\n")
		}
	}
	return append([]byte(top.String()), body...), nil
}

// plain matches strings that need no quotes in any version of YAML, except words.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/-]*([.][A-Za-z0-9_/-]+)*$`)

// words are not strings in some version of YAML.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// quote quotes strings that YAML 1.1 or 1.2 may read as a number, a time or a boolean: versions of
// compose use either.
func quote(s string) ([]byte, error) {
	if plain.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return []byte(s), nil
	}
	return []byte(strconv.Quote(s)), nil
}
