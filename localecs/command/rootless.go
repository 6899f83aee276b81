package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// WithoutRoot runs the command again in a user namespace when this process
// lacks privileges for containers and a kind of network. done says that it has,
// and err is how that ended. The process inside gets the file, if there is one. An
// engine cannot be used from there.
func WithoutRoot(inv *cli.Invocation, mode network.Mode, engine string, inherit *os.File) (done bool, err error) {
	if engine != "" {
		return false, nil // which says itself what it needs
	}
	if host.Inside() {
		return false, host.CheckNamespace()
	}
	missing, err := host.MissingOnHost(slices.Concat(runtime.Needs(), mode.Needs())...)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	instead := ""
	if forContainers, err := host.MissingOnHost(runtime.Needs()...); err == nil && len(forContainers) == 0 {
		instead = "use -network host, which says what is lost then"
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	bin := filepath.Dir(self)
	code, err := host.Run(host.Options{
		Args: inv.Line, Stdin: inv.Stdin, Stdout: inv.Stdout, Stderr: inv.Stderr, Log: inv.Log,
		NewUIDMap: Find("newuidmap", bin), NewGIDMap: Find("newgidmap", bin), Missing: missing, Instead: instead, HostNetwork: mode == network.Host, Inherit: inherit,
	})
	switch {
	case err != nil:
		return true, err
	case code > 128: // no command ends like this by itself
		return true, fmt.Errorf("the process in the user namespace was ended by signal %s; nothing of it is left", syscall.Signal(code-128))
	}
	return true, &cli.ExitError{Code: code}
}
