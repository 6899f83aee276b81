// Package consulecs_test holds the rules of the whole repository.
package consulecs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit/arch"
)

const module = "github.com/meshtask/consul-ecs"

// layout returns the architecture: who may import whom, from top to bottom, and what only some packages may do.
// docs/ARCHITECTURE.md shows its table.
func layout() arch.Layout {
	return arch.Layout{
		Groups: []arch.Group{
			{Name: "programs", Packages: []string{"cmd/consul-ecs"}, Uses: []string{"commands"}},
			{
				Name: "commands", Packages: []string{"subcommand"},
				Uses: []string{"use cases", "adapters", "domain", "command line", "shared"},
			},
			{
				Name: "use cases",
				Packages: []string{
					"meshinit", "clientagent", "healthsync", "entrypoint", "controller", "admission",
					"broker", "images", "doctor", "traffic",
				},
				Among: arch.Never, Interface: 3,
				Uses: []string{"adapters", "domain", "command line", "shared"},
			},
			{
				Name:     "adapters",
				Packages: []string{"registrar", "consulutil", "awsutil", "relay", "envoy", "supervise", "redirect"},
				Among:    arch.Downwards,
				Uses:     []string{"domain", "command line", "shared"},
			},
			{
				Name:     "domain",
				Packages: []string{"workload", "bootstrap", "aclrules", "reach", "taskdef", "config"},
				Among:    arch.Downwards, Pure: true,
				Uses: []string{"shared"},
			},
			{Name: "command line", Packages: []string{"internal/cli"}, Uses: []string{"domain", "shared"}},
			{
				Name: "shared",
				Packages: []string{
					"internal/exit", "internal/volume", "internal/retry", "internal/logkey", "internal/metrics",
					"internal/secret", "internal/tcp", "internal/inflight", "internal/failure",
				},
				Among: arch.Downwards,
			},
			{
				Name: "simulator programs", Packages: []string{"cmd/localecs"},
				Uses: []string{"simulator commands", "simulator"},
			},
			{
				Name: "simulator commands", Packages: []string{"localecs/command"},
				Uses: []string{
					"simulator", "simulated ECS", "simulator domain", "adapters", "domain", "command line", "shared",
				},
			},
			{
				Name: "simulator",
				Packages: []string{
					"localecs/control", "localecs/scenario", "localecs/scenario/file", "localecs/view",
					"localecs/compose", "localecs/cluster", "localecs/meter", "localecs/docker", "localecs/network",
					"localecs/runtime", "localecs/host",
				},
				Among: arch.Downwards,
				Uses:  []string{"simulated ECS", "simulator domain", "adapters", "domain", "command line", "shared"},
			},
			{
				Name: "simulated ECS",
				Packages: []string{
					"localecs/ecs/simulated", "localecs/ecs/controlplane", "localecs/ecs/metadata", "localecs/ecs/iam",
					"localecs/ecs/shapes",
				},
				Among: arch.Downwards,
				Uses:  []string{"simulator domain", "adapters", "domain", "shared"},
			},
			{
				Name:     "simulator domain",
				Packages: []string{"localecs/chaos", "localecs/ecs/scheduler"},
				Among:    arch.Never, Pure: true,
				Uses: []string{"domain"},
			},
			{
				Name: "tests",
				Packages: []string{
					"internal/testkit", "internal/bench", "internal/size", "internal/image", "awsutil/awstest",
				},
				Among: arch.Freely, TestOnly: true,
				Uses: []string{"simulator", "simulated ECS", "simulator domain", "adapters", "domain", "shared"},
			},
			{Name: "root", Packages: []string{"."}},
			{Name: "examples", Packages: []string{"examples"}},
		},
		Rules: []arch.Rule{
			{
				Name: "consul-client", Import: "github.com/hashicorp/consul/api",
				Names:   []string{"NewClient", "NewHttpClient"},
				Allowed: []string{"consulutil"}, Why: "only consulutil makes clients, with timeouts",
			},
			{
				Name: "environment", Import: "os",
				Names:   []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv"},
				Allowed: []string{"config", "subcommand", "localecs/command"},
				Why:     "the environment is read at the edge and goes down as values",
			},
			{
				Name: "environment", Import: "syscall", Names: []string{"Getenv", "Environ", "Setenv"},
				Why: "the environment is read at the edge and goes down as values",
			},
			{
				Name: "process", Import: "syscall", Names: []string{"Exec", "ForkExec", "Kill", "SysProcAttr", "Wait4"},
				Allowed: []string{"supervise", "localecs"}, Why: "supervise owns child processes",
			},
		},
		Fields: []arch.Rule{
			{
				Name: "generation", Names: []string{"Agentless"},
				Allowed: []string{"registrar", "workload", "config", "healthsync", "admission", "subcommand"},
				Why:     "ask for the generation where something is chosen by it",
			},
			{
				Name: "generation", Names: []string{"ConsulServers"},
				Allowed: []string{"config", "consulutil", "bootstrap", "meshinit", "subcommand"},
				Why:     "ask Agentless for the generation",
			},
		},
		Bans: []arch.Ban{{
			Package: "entrypoint",
			Imports: []string{"github.com/hashicorp/consul", module + "/consulutil", module + "/registrar"},
			Why:     "supervision does not care who registers the task",
		}},
		Unreachable: map[string]string{"cmd/consul-ecs": "localecs"},
		Depths: []arch.Depth{
			{From: "cmd/consul-ecs", Most: 6}, {From: "cmd/localecs", Within: "localecs", Most: 8},
		},
		Exemptions: exemptions(),
		Allowances: allowances(),
	}
}

// exemptions returns the exemptions, which are few; each says why.
func exemptions() []arch.Exemption {
	return []arch.Exemption{
		{Where: "supervise/supervise_linux.go", Rule: "environment", Reason: "the child inherits our environment"},
		{
			Where: "localecs/host/main.go", Rule: "environment",
			Reason: "it executes the same program again, with the same environment",
		},
		{
			Where: "localecs/runtime/supervise.go", Rule: "environment",
			Reason: "it runs as the container's init: the environment is the container's",
		},
		{
			Where: "localecs/host/hostcap.go", Rule: "undocumented",
			Reason: "one comment heads a block of one-line functions",
		},
		{
			Where: "aclrules", Rule: "package-size",
			Reason: "the ACL language, its resolution and its explanation share one vocabulary",
		},
		{
			Where: "admission", Rule: "package-size",
			Reason: "the mutators and validators of one definition share its state",
		},
		{
			Where: "broker", Rule: "package-size",
			Reason: "the states of a request and the record of its token share one vocabulary",
		},
		{
			Where: "consulutil", Rule: "package-size",
			Reason: "logins, servers, leadership and ACL objects share its clients and error classes",
		},
		{Where: "localecs/command", Rule: "package-size", Reason: "one short file per command"},
		{Where: "subcommand", Rule: "package-size", Reason: "one short file per command"},
		{Where: "taskdef", Rule: "package-size", Reason: "the rule table, and one tree of nodes for JSON and YAML"},
		{
			Where: "localecs/ecs/controlplane", Rule: "package-size",
			Reason: "the calls of the ECS API share its records",
		},
		{
			Where: "localecs/runtime", Rule: "package-size",
			Reason: "start, stop and clean-up of one container share its state",
		},
		{Where: "localecs/scenario", Rule: "package-size", Reason: "steps, observation and judgement of one run"},
	}
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	m, err := arch.Load(os.DirFS("."), module)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range layout().Check(m) {
		t.Error(v)
	}
}

func TestArchitecturePageShowsTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := layout().Table(); !strings.Contains(string(page), table) {
		t.Errorf("docs/ARCHITECTURE.md does not show the table of imports:\n\n%s", table)
	}
}

// TestTextsReferToNoNumberedSection: a reader has the documents of this repository, in
// which no section is numbered, and those that a text names, such as an RFC.
func TestTextsReferToNoNumberedSection(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`RFC|regexp\.`)
	number := regexp.MustCompile(`(?i)\bsections? \d|\x{a7}`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := d.IsDir() && strings.HasPrefix(d.Name(), "."); hidden && path != "." {
			return fs.SkipDir
		}
		if !slices.Contains([]string{".go", ".md", ".yaml", ".tf"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if number.MatchString(line) && !foreign.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, line)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
