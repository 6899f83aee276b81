package runtime

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Image is what a container has apart from its definition. Paths on the left
// of a map are the container's, those on the right the host's.
type Image struct {
	Name string `json:"name"`
	// Programs are executables. The shared libraries of a dynamically linked
	// one come along; the interpreter of a script must be listed too.
	Programs map[string]string `json:"programs,omitempty"`
	// Files are other files or whole directories, CA certificates for instance. They are read-only, as programs are.
	Files map[string]string `json:"files,omitempty"`
	// Volumes are the image's VOLUME directories: writable even under a read-only root. A task volume mounted there
	// takes over the ownership, which is how a container that is not root gets a directory to share.
	Volumes []Dir `json:"volumes,omitempty"`
	// Users maps names to "uid:gid", as the image's /etc/passwd would. root and nobody are always known.
	Users map[string]string `json:"users,omitempty"`

	// Defaults that a container definition replaces.
	Env        []string `json:"env,omitempty"` // KEY=value
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
	User       string   `json:"user,omitempty"`
	// StopSignal is a name ("SIGINT", "INT") or a number; empty is SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
}

// Images are defined images, by name; AllImages is every other one.
type Images map[string]Image

// AllImages is the name that stands for every image without an own definition.
const AllImages = "*"

// Find returns the image of that name, if it is defined.
func (all Images) Find(name string) (i Image, ok bool) {
	if i, ok = all[name]; !ok {
		i, ok = all[AllImages]
	}
	if ok {
		i.Name = name
	}
	return i, ok
}

// Dir is a directory with its owner.
type Dir struct {
	Path string `json:"path"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	// Mode is the permission bits; 0 is 0755.
	Mode uint32 `json:"mode,omitempty"`
}

// Argv returns the command line of a container: a definition's entryPoint drops the
// image's ENTRYPOINT and CMD both, its command alone replaces only CMD.
func (i Image) Argv(entryPoint, command []string) []string {
	if len(entryPoint) == 0 {
		entryPoint = i.Entrypoint
		if len(command) == 0 {
			command = i.Cmd
		}
	}
	return append(append([]string(nil), entryPoint...), command...)
}

// Signal returns what a stop sends to PID 1.
func (i Image) Signal() (syscall.Signal, error) {
	signal, err := ParseSignal(cmp.Or(i.StopSignal, "TERM"))
	if err != nil {
		return 0, fmt.Errorf("image %q: stop %w", i.Name, err)
	}
	return signal, nil
}

// ParseSignal reads a signal's name ("SIGINT", "int") or number.
func ParseSignal(text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := unix.SignalNum(name); s != 0 {
		return s, nil
	}
	return 0, fmt.Errorf("signal %q is unknown", text)
}

// Account is the user of a container's processes.
type Account struct {
	UID, GID int
	// Home is /root for root, else "/".
	Home string
}

// Account resolves user, or the image's default when it is empty: name or
// uid, optionally with ":" and a gid. Numbers need no entry in Users.
func (i Image) Account(user string) (Account, error) {
	user = cmp.Or(user, i.User, "0")
	name, group, hasGroup := strings.Cut(user, ":")
	known := i.accounts()
	account, found := known[name]
	if uid, err := parseID(name); err == nil {
		if account, found = byUID(known, uid); !found {
			account, found = Account{UID: uid, Home: "/"}, true
		}
	}
	if !found {
		return Account{}, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
	}
	if hasGroup {
		gid, err := groupID(known, group)
		if err != nil {
			return Account{}, err
		}
		account.GID = gid
	}
	return account, nil
}

func parseID(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

func byUID(known map[string]Account, uid int) (Account, bool) {
	for _, a := range known {
		if a.UID == uid {
			return a, true
		}
	}
	return Account{}, false
}

// groupID resolves a group: a number, or a user's name, whose own group has
// the same name in the images this package makes.
func groupID(known map[string]Account, group string) (int, error) {
	if gid, err := parseID(group); err == nil {
		return gid, nil
	}
	if a, ok := known[group]; ok {
		return a.GID, nil
	}
	return 0, fmt.Errorf("unable to find group %s: no matching entries in group file", group)
}

// accounts returns the users the image knows. An entry that is not "uid" or "uid:gid" is left out; Validate names it.
func (i Image) accounts() map[string]Account {
	known := map[string]Account{
		"root":   {Home: "/root"},
		"nobody": {UID: 65534, GID: 65534, Home: "/"},
	}
	for name, ids := range i.Users {
		if a, err := parseAccount(ids); err == nil {
			known[name] = a
		}
	}
	return known
}

func parseAccount(ids string) (Account, error) {
	u, g, hasGroup := strings.Cut(ids, ":")
	uid, err := parseID(u)
	gid := uid
	if err == nil && hasGroup {
		gid, err = parseID(g)
	}
	return Account{UID: uid, GID: gid, Home: "/"}, err
}
