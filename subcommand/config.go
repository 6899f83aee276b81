package subcommand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

const configHelp = `
config schema prints the configuration's JSON Schema (draft-07), for editors.

config validate checks a configuration as mesh-init would, without a task or a
Consul: it prints every violation and every setting without effect, each with
its JSON path, and the generation that it assumed: agentless with consulServers at
its root, else agent. With -json it prints {"valid": ...,
"generation": ..., "violations": [...], "warnings": [...]}. Exit codes: 0 valid,
warnings or not; 1 not valid or not readable.

Environment:
  CONSUL_ECS_CONFIG_JSON  the configuration, without -file
  CONSUL_ECS_GENERATION   agent or agentless: what it must be; unset: either

Example:
  $ consul-ecs config schema > consul-ecs.schema.json
  $ echo '{"bootstrapDir": "/consul", "service": {"port": "80"}}' |
      consul-ecs config validate -file -
  violation $.service.port: must be an integer from 0 to 65535, not a string
  not valid (agent)`

func configCommand() cli.Command {
	var v validation
	return cli.Command{
		Synopsis: "Check a configuration, or print its schema",
		Usage:    "config schema | config validate [-file FILE] [-json]",
		Help:     configHelp,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&v.file, "file", "",
				"validate `FILE`, - for standard input (default the environment variable)")
			fs.BoolVar(&v.json, "json", false, "print the result of validate as JSON")
		},
		FlagsAnywhere: true,
		Run: func(_ context.Context, inv *cli.Invocation) error {
			switch {
			case len(inv.Args) == 0:
				return exit.Usagef("want config schema or config validate")
			case len(inv.Args) > 1:
				return exit.Usagef("unexpected argument %q", inv.Args[1])
			case inv.Args[0] == "validate":
				return v.run(inv)
			case inv.Args[0] != "schema":
				return exit.Usagef("unknown subcommand %q: want schema or validate", inv.Args[0])
			case v != validation{}:
				return exit.Usagef("schema takes no flags")
			}
			_, err := inv.Stdout.Write(config.Schema())
			return err
		},
	}
}

// validation is one call of config validate.
type validation struct {
	file string
	json bool
}

// verdict is what config validate -json prints.
type verdict struct {
	Valid          bool             `json:"valid"`
	GenerationName string           `json:"generation,omitempty"` // empty for what is not JSON
	Violations     []config.Finding `json:"violations"`
	Warnings       []config.Finding `json:"warnings"`
}

func (v validation) run(inv *cli.Invocation) error {
	doc, err := v.read(inv)
	if err != nil {
		return err
	}
	result, err := validateDocument(doc, inv.Getenv(config.GenerationEnvVar))
	if err != nil {
		return err
	}
	if v.json {
		err = writeIndented(inv.Stdout, result)
	} else {
		_, err = io.WriteString(inv.Stdout, result.String())
	}
	if err == nil && !result.Valid {
		err = &exit.CodeError{Code: exit.CodeUsage}
	}
	return err
}

func (v validation) read(inv *cli.Invocation) ([]byte, error) {
	if v.file == "" {
		return []byte(inv.Getenv(config.EnvVar)), nil
	}
	doc, err := readInput(inv, v.file)
	if err != nil {
		return nil, exit.Usagef("read configuration: %w", err)
	}
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, exit.Usagef("read configuration: %q is empty", v.file)
	}
	return doc, nil
}

func validateDocument(doc []byte, generation string) (verdict, error) {
	if isMeshFile(doc) {
		return verdict{},
			exit.Usagef("this is a mesh file, as it has the member admission: consul-ecs admit -config checks it with a task definition")
	}
	cfg, warnings, err := config.ParseAs(doc, generation)
	result := verdict{Valid: err == nil, Violations: []config.Finding{}, Warnings: append([]config.Finding{},
		warnings...)}
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		result.GenerationName, result.Violations = invalid.GenerationName(), invalid.Violations
	} else if err != nil {
		return verdict{}, &exit.UsageError{Err: err}
	} else {
		result.GenerationName = cfg.GenerationName()
	}
	return result, nil
}

// isMeshFile reports whether a document has the member of a mesh file that no configuration has.
func isMeshFile(doc []byte) bool {
	var root map[string]json.RawMessage
	return json.Unmarshal(doc, &root) == nil && root["admission"] != nil
}

// String returns one line per finding and the verdict last, with the generation.
func (v verdict) String() string {
	var b strings.Builder
	for _, x := range v.Violations {
		fmt.Fprintf(&b, "violation %s: %s\n", x.Path, x.Message)
	}
	for _, x := range v.Warnings {
		fmt.Fprintf(&b, "warning %s: %s\n", x.Path, x.Message)
	}
	if !v.Valid {
		b.WriteString("not ")
	}
	b.WriteString("valid")
	if v.GenerationName != "" {
		b.WriteString(" (" + v.GenerationName + ")")
	}
	return b.String() + "\n"
}
