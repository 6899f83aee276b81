package runtime

import (
	"bytes"
	"encoding/json"
	"syscall"
)

// argv0 marks a process as a container's first stage.
const argv0 = "localecs-container-init"

// Further words on the command line choose what the process becomes.
const (
	wordSupervise = "supervise"
	// wordAnchor and wordSpawner: the processes that all containers hang on, and come from; see runtime.
	wordAnchor  = "anchor"
	wordSpawner = "spawner"
)

// Descriptors a first stage inherits beside its standard ones.
const (
	configFD = 3
	statusFD = 4
	netnsFD  = 5
)

// socketFD is the anchor's and the spawner's socket. Only the simulator has the other end.
const socketFD = 3

// stageConfig is all a first stage needs to know.
type stageConfig struct {
	// Args is the program and its arguments; Env is complete.
	Args []string
	Env  []string
	// Dir is made when it does not exist.
	Dir      string
	UID, GID int
	Hostname string
	// JoinNet: the network namespace is at descriptor 5.
	JoinNet bool
	// ReadOnly is for the root file system; mounts stay as they are.
	ReadOnly bool
	Mounts   []stageMount
	// Scratch directories are writable and empty at start.
	Scratch []Dir
	// Texts are files of the root file system, path to content.
	Texts  map[string]string
	Limits []rlimit
	// Init keeps this binary as PID 1.
	Init bool
	// Capabilities are those that the program may have, a bit each.
	Capabilities uint64

	// What a user who is not root can do without.

	// KeepGroups: supplementary groups cannot be set.
	KeepGroups bool
	// NoTTYGroup: group 5, which owns pseudo-terminals, does not exist.
	NoTTYGroup bool
	// NoCapabilities: the program is root by number only.
	NoCapabilities bool
}

// stageMount is a bind mount of a file or directory.
type stageMount struct {
	Source, Target string
	ReadOnly       bool
	// Device keeps a device file usable.
	Device bool
	// Optional: nothing happens when Source does not exist.
	Optional bool
}

// rlimit is a resource limit by its RLIMIT number.
type rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// stageError is how a first stage describes its failure.
type stageError struct {
	// Step names what was being done; empty for the program's own start.
	Step  string
	Text  string
	Errno syscall.Errno
	// Host: only the host can be why, neither definition nor image.
	Host bool
	// File: it is about a file, see host.AboutFile.
	File bool
}

// Error returns the step and the system's words.
func (r *stageError) Error() string {
	if r.Step == "" {
		return r.Text
	}
	return r.Step + ": " + r.Text
}

// Unwrap gives errors.Is the number.
func (r *stageError) Unwrap() error {
	if r.Errno == 0 {
		return nil
	}
	return r.Errno
}

const (
	// started is what a first stage writes right before it becomes the program.
	started = '+'
	// warned begins a line about what it lacks.
	warned = '!'
)

// parseStatus reads the report of a first stage: none when the program runs. ended means that it ended before either.
func parseStatus(b []byte) (warnings []string, report *stageError, ended bool) {
	for len(b) > 0 && b[0] == warned {
		line, rest, _ := bytes.Cut(b[1:], []byte("\n"))
		warnings, b = append(warnings, string(line)), rest
	}
	if len(b) > 0 && b[0] == started {
		b = b[1:]
		if len(b) == 0 {
			return warnings, nil, false
		}
	}
	report = new(stageError)
	if err := json.Unmarshal(b, report); err != nil {
		return warnings, nil, true
	}
	return warnings, report, false
}
