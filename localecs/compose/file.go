package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// File is a compose file, as far as tasks need it.
type File struct {
	Services map[string]Service  `yaml:"services"`
	Networks map[string]Network  `yaml:"networks"`
	Volumes  map[string]struct{} `yaml:"volumes,omitempty"`

	// Warnings tell what the definitions ask for and the file cannot say, each
	// with its place.
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

// Dependency says when a service may start.
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

// Attachment is a service's place in a network.
type NetworkAttachment struct {
	IPv4Address string `yaml:"ipv4_address,omitempty"`
}

// Network is one of the project's.
type Network struct {
	IPAM *IPAM `yaml:"ipam,omitempty"`
}

// IPAM has the network's subnets.
type IPAM struct {
	Config []Subnet `yaml:"config"`
}

// Subnet is one of a network.
type Subnet struct {
	Subnet string `yaml:"subnet"`
}

// YAML is the file, below a comment that says what it is and what it lacks.
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
		top.WriteString("#\n# What the task definitions ask for and compose cannot do:\n")
		for _, w := range f.Warnings {
			top.WriteString("#   " + strings.Join(strings.Fields(w), " ") + "\n")
		}
	}
	return append([]byte(top.String()), body...), nil
}

// plain is what every version of YAML reads as a string without quotes, besides
// words.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/-]*([.][A-Za-z0-9_/-]+)*$`)

// words are what some version of YAML takes for something else than strings.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// quote quotes whatever might be taken for a number, a time or a truth: compose
// has been written with readers of YAML 1.1 and of 1.2.
func quote(s string) ([]byte, error) {
	if plain.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return []byte(s), nil
	}
	return []byte(strconv.Quote(s)), nil
}
