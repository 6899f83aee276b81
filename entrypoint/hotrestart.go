package entrypoint

import (
	"path"
	"slices"
	"strings"
)

// WithoutHotRestart returns the command line with --disable-hot-restart where it starts Envoy
// and leaves hot restart to the default. With that Envoy binds a Unix socket in the network
// namespace, which all containers of a task share: a second Envoy could not start. A command
// that chooses the socket itself, or that starts another program, is returned as it is.
func WithoutHotRestart(command []string) []string {
	at := envoyAt(command)
	if at < 0 || slices.ContainsFunc(command[at+1:], aboutHotRestart) {
		return command
	}
	return slices.Insert(slices.Clone(command), at+1, "--disable-hot-restart")
}

// envoyAt returns where a command line names Envoy: first, after the ENTRYPOINT of Envoy's
// image, or after a program that executes its arguments; -1 when it starts another program.
func envoyAt(command []string) int {
	is := func(i int, program string) bool { return i < len(command) && path.Base(command[i]) == program }
	switch {
	case is(0, "envoy"):
		return 0
	case is(0, "docker-entrypoint.sh") && is(1, "envoy"):
		return 1
	case is(0, "docker-entrypoint.sh") && len(command) > 1 && strings.HasPrefix(command[1], "-"):
		return 0 // which starts Envoy with these flags
	case len(command) > 0:
		return executedEnvoyAt(command)
	}
	return -1
}

// executedEnvoyAt returns where the arguments of a program that executes them name Envoy, -1 if they do not.
func executedEnvoyAt(command []string) int {
	from := 1
	switch path.Base(command[0]) {
	case "catatonit", "dumb-init", "env", "tini", "tini-static":
	case "gosu", "su-exec":
		from = 2 // after the user, which may be called envoy
	default:
		return -1
	}
	for at := from; at < len(command); at++ {
		if path.Base(command[at]) == "envoy" {
			return at
		}
	}
	return -1
}

// aboutHotRestart reports whether a word is a flag of Envoy by which hot restart is chosen.
func aboutHotRestart(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{
		"--disable-hot-restart", "--base-id", "--use-dynamic-base-id", "--base-id-path", "--restart-epoch",
		"--socket-path", "--hot-restart-version",
	}, name)
}
