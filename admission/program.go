package admission

import (
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// isShell reports whether a word is the name of a shell, as a command has it.
func isShell(word string) bool {
	return slices.Contains([]string{"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"}, word)
}

// isProgram reports whether the first word of a command is a program whatever the image's
// ENTRYPOINT is: an absolute path or a shell. A path that is the text of sh -c, or that names
// what an interpreter reads, is an argument.
func isProgram(word string) bool {
	if isShell(word) {
		return true
	}
	return path.IsAbs(word) && !strings.ContainsAny(word, " \t\n;&|<>$*") && !strings.HasSuffix(word, "/") &&
		!isDocument(path.Ext(word))
}

// isDocument reports whether files with an extension are read by a program, and not executed.
func isDocument(ext string) bool {
	return slices.Contains([]string{
		".cfg", ".cjs", ".conf", ".config", ".css", ".dll", ".env", ".ex", ".exs", ".hcl", ".html", ".ini", ".jar",
		".js", ".json", ".jsonnet",
		".lua", ".mjs", ".php", ".pl", ".properties", ".py", ".r", ".rb", ".sql", ".tf", ".toml", ".ts", ".txt", ".war",
		".wasm", ".xml", ".yaml", ".yml",
	}, strings.ToLower(ext))
}

// isInit reports whether a program refuses to run unless it is process 1: an init system, or
// s6-overlay, whose files are below /package/admin.
func isInit(program string) bool {
	if !path.IsAbs(program) {
		return slices.Contains([]string{"init", "openrc-init", "runit", "runit-init", "systemd"}, program)
	}
	program = path.Clean(program)
	if strings.HasPrefix(program, "/package/admin/s6-overlay") || program == "/linuxrc" {
		return true
	}
	switch path.Base(program) {
	case "init", "openrc-init", "runit", "runit-init":
		return slices.Contains([]string{"/", "/bin", "/sbin", "/usr/bin", "/usr/sbin"}, path.Dir(program))
	case "systemd":
		return slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/lib/systemd", "/usr/lib/systemd"},
			path.Dir(program))
	}
	return false
}

// findInit returns the program of a container's line that must be process 1, empty without one:
// its first word, what a shell or another program executes in its own place, or the applet of
// BusyBox. Certain is true for the first word.
func findInit(line []string) (program string, certain bool) {
	if len(line) == 0 {
		return "", false
	}
	if isInit(line[0]) {
		return line[0], true
	}
	if path.Base(line[0]) == "busybox" && len(line) > 1 {
		if line[1] == "init" {
			return "busybox init", true
		}
		return findInit(line[1:])
	}
	if isShell(path.Base(line[0])) {
		return initOfScript(line), false
	}
	for _, word := range line[1:] { // the end of a script that executes its arguments, env, gosu
		if path.IsAbs(word) && isInit(word) {
			return word, false
		}
	}
	return "", false
}

// initOfScript returns the program that must be process 1 of those that a shell executes in its
// own place.
func initOfScript(line []string) string {
	words := slices.DeleteFunc(slices.Clone(line[1:]), func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) > 0 {
		script := strings.FieldsFunc(words[0], func(r rune) bool { return strings.ContainsRune(" \t\n;&|()\"'", r) })
		words = append(script, words[1:]...) // the others are its arguments, such as those of exec "$@"
	}
	for i, word := range words {
		if isInit(word) && (i == 0 || words[i-1] == "exec" || path.IsAbs(word)) {
			return word
		}
	}
	return ""
}

// runsInit reports whether the script that a container executes runs s6-overlay's /init in its own
// place: the one of Datadog's agent, and the own program of an image that declares the directory of
// s6 as a volume, by the configuration in the lock.
func runsInit(line []string, image string, config taskdef.ImageConfig) bool {
	if len(line) == 0 {
		return false
	}
	repository := repositoryOf(image)
	datadog := func(known string) bool { return isRepository(repository, known) }
	if line[0] == "/bin/entrypoint.sh" &&
		slices.ContainsFunc([]string{"datadog/agent", "datadoghq/agent", "datadog-agent"}, datadog) {
		return true
	}
	own := slices.Concat(config.Entrypoint, config.Cmd)
	supervised := func(volume string) bool {
		return slices.Contains([]string{"/run/s6", "/var/run/s6"}, path.Clean(volume))
	}
	return len(own) > 0 && line[0] == own[0] && slices.ContainsFunc(config.Volumes, supervised)
}
