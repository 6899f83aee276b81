package runtime

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/taskdef"
)

// DefaultPath is the PATH of a container whose image and definition have none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec is one container.
type Spec struct {
	// Name is for messages.
	Name  string
	Image Image
	// Args is the whole command line, see image.Image.Argv.
	Args []string
	// Env is KEY=value, over the image's; a later entry wins. PATH, HOME and HOSTNAME are added where they are missing.
	Env []string
	// WorkingDir is the image's, or /, when empty. It is made when missing.
	WorkingDir string
	// User is "uid[:gid]" or a name of the image; empty is the image's, or root.
	User string
	// ReadOnlyRoot leaves mounts and the image's volumes writable.
	ReadOnlyRoot bool
	Mounts       []Mount
	Ulimits      []Ulimit
	// Capabilities are added to the default ones, or taken from them; nil for the default ones.
	Capabilities *taskdef.Capabilities
	// InitProcess puts an init before the program, which is PID 1 otherwise.
	InitProcess bool
	Hostname    string
	// Hosts and ResolvConf are the files' contents.
	Hosts, ResolvConf string
	// Stdout and Stderr get whole lines, one Write each. They may be the same
	// writer if it is safe for concurrent use. Nil drops the output.
	Stdout, Stderr io.Writer
	// netNS is the task's network; nil is the host's.
	netNS *os.File
	// pids is a pid namespace to share; nil makes the program PID 1 of a new one.
	pids *pidNamespace
	// budget is the task's group, see Limit; nil neither limits nor measures. Memory is
	// the container's own limit in bytes, within a budget only; 0 is none.
	budget *ControlGroup
	Memory uint64
}

// Mount shows a directory of the host, or a file, at Target. An empty Source
// directory takes over the ownership of the image's directory at Target.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Ulimit is a resource limit, by ECS's name: nofile, core, ...
type Ulimit struct {
	Name       string
	Soft, Hard uint64
}

// config resolves a spec against its image and this host. warnings are what the host cannot give.
func (r *Runtime) config(s Spec) (c stageConfig, warnings []string, err error) {
	if len(s.Args) == 0 {
		return c, nil, fmt.Errorf("no command specified: neither the definition nor image %q has one", s.Image.Name)
	}
	binds, err := r.images.Binds(s.Image)
	if err != nil {
		return c, nil, err
	}
	account, err := s.Image.Account(s.User)
	if err != nil {
		return c, nil, err
	}
	limits, warnings, err := resolveLimits(s.Ulimits, r.hardLimit)
	if err != nil {
		return c, nil, err
	}
	c = stageConfig{
		Args: s.Args, Env: environment(s, account), Dir: cmp.Or(s.WorkingDir, s.Image.WorkingDir, "/"), UID: account.UID, GID: account.GID,
		Hostname: s.Hostname, JoinNet: s.netNS != nil, ReadOnly: s.ReadOnlyRoot,
		Scratch: unmounted(s.Image.Volumes, s.Mounts), Texts: texts(s), Limits: limits, Init: s.InitProcess,
		Capabilities: capabilities(s.Capabilities, s.netNS != nil),
	}
	if s.InitProcess {
		own, err := r.ownLibraries()
		if err != nil {
			return c, nil, err
		}
		binds = slices.Concat(own, binds) // the image's own come later and win
	}
	c.Mounts, err = mounts(binds, s.Mounts)
	return c, append(warnings, fit(s.Name, &c, r.ids)...), err
}

// environment returns the image's variables, the definition's over them, and what every process expects.
func environment(s Spec, account Account) []string {
	var order []string
	values := map[string]string{}
	defaults := []string{"PATH=" + DefaultPath, "HOME=" + account.Home}
	if s.Hostname != "" {
		defaults = append(defaults, "HOSTNAME="+s.Hostname)
	}
	for _, list := range [][]string{defaults, s.Image.Env, s.Env} {
		for _, e := range list {
			name, value, _ := strings.Cut(e, "=")
			if _, ok := values[name]; !ok {
				order = append(order, name)
			}
			values[name] = value
		}
	}
	env := make([]string, 0, len(order))
	for _, name := range order {
		env = append(env, name+"="+values[name])
	}
	return env
}

func texts(s Spec) map[string]string {
	hosts := cmp.Or(s.Hosts, "127.0.0.1 localhost\n")
	return map[string]string{
		"/etc/hosts":       hosts,
		"/etc/hostname":    s.Hostname + "\n",
		"/etc/resolv.conf": s.ResolvConf,
		"/etc/passwd":      s.Image.Passwd(),
		"/etc/group":       s.Image.Group(),
	}
}

func unmounted(volumes []Dir, mounts []Mount) []Dir {
	covered := map[string]bool{}
	for _, m := range mounts {
		covered[path.Clean(m.Target)] = true
	}
	var left []Dir
	for _, v := range volumes {
		if !covered[path.Clean(v.Path)] {
			left = append(left, v)
		}
	}
	return left
}

// mounts joins what the image and the definition mount. Of two at one target the later wins.
func mounts(binds []Bind, volumes []Mount) ([]stageMount, error) {
	var all []stageMount
	index := map[string]int{}
	add := func(m stageMount) {
		if i, ok := index[m.Target]; ok {
			all[i] = m
			return
		}
		index[m.Target] = len(all)
		all = append(all, m)
	}
	for _, b := range binds {
		add(stageMount{Source: b.Source, Target: b.Target, ReadOnly: true})
	}
	for _, v := range volumes {
		if !path.IsAbs(v.Target) || path.Clean(v.Target) == "/" {
			return nil, fmt.Errorf("mount at %q: want an absolute path below /", v.Target)
		}
		source, err := filepath.Abs(v.Source)
		if err != nil {
			return nil, fmt.Errorf("mount at %q: %w", v.Target, err)
		}
		add(stageMount{Source: source, Target: path.Clean(v.Target), ReadOnly: v.ReadOnly})
	}
	return all, nil
}

// claim gives empty volumes the ownership of the image's directory. warnings name owners that do not exist.
func claim(i Image, mounts []Mount, ids host.IDs) (warnings []string, err error) {
	owned := map[string]Dir{}
	for _, d := range i.Volumes {
		owned[path.Clean(d.Path)] = d
	}
	for _, m := range mounts {
		d, ok := owned[path.Clean(m.Target)]
		if !ok {
			continue
		}
		if entries, err := os.ReadDir(m.Source); err != nil || len(entries) > 0 {
			continue // a file, or in use; one that is missing is reported by the mount
		}
		d, warnings = fitOwner(d, ids, warnings)
		if err := os.Chown(m.Source, d.UID, d.GID); err != nil {
			return nil, fmt.Errorf("give volume at %s its owner: %w", m.Target, err)
		}
		if d.Mode != 0 {
			if err := unix.Chmod(m.Source, d.Mode); err != nil {
				return nil, fmt.Errorf("give volume at %s its mode: %w", m.Target, err)
			}
		}
	}
	return warnings, nil
}
