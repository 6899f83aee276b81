package subcommand

import (
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/failure"
)

// Main runs the subcommand that args names and returns the exit code.
func Main(args []string) int {
	return cli.Main(cli.App{
		Name:     "consul-ecs",
		Version:  cli.Version(),
		Commands: commands(),
		Identify: failure.Of,
	}, args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

func commands() map[string]cli.Command {
	return map[string]cli.Command{
		"acl":               aclCommand(),
		"acl-controller":    aclControllerCommand(),
		"admit":             admitCommand(),
		"app-entrypoint":    appEntrypointCommand(),
		"client-entrypoint": clientEntrypointCommand(),
		"config":            configCommand(),
		"controller":        controllerCommand(),
		"doctor":            doctorCommand(),
		"envoy-entrypoint":  envoyEntrypointCommand(),
		"explain":           explainCommand(),
		"gc":                gcCommand(),
		"images":            imagesCommand(),
		"health-sync":       healthSyncCommand(),
		"install":           installCommand(),
		"mesh-init":         meshInitCommand(),
		"net-dial":          netDialCommand(),
		"status":            statusCommand(),
		"token-receive":     tokenReceiveCommand(),
		"token-broker":      tokenBrokerCommand(),
		"version":           versionCommand(),
		"why":               whyCommand(),
	}
}
