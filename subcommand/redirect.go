package subcommand

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/workload"
)

// redirection is the transparent proxy and the names of upstreams. It changes what all
// containers of the task share.
type redirection struct {
	settings   config.TransparentProxy
	publicPort int
	readyPort  int
	hosts      []string
	servers    *consulutil.Servers
	log        hclog.Logger
	// undos restore the files that Apply has changed.
	undos []func() error
}

// redirection returns nil when there is nothing to do.
func (a consulAccess) redirection(cfg *config.Config, log hclog.Logger) meshinit.Redirection {
	rename := len(a.hosts) > 0 && os.Geteuid() == 0 // else app-entrypoint does it alone
	if cfg.Gateway != nil || !cfg.TransparentProxy.Enabled && !rename {
		return nil
	}
	r := &redirection{
		settings: cfg.TransparentProxy, publicPort: cfg.Proxy.PublicListenerPort, readyPort: cfg.ReadyPort(),
		servers: a.servers, log: log,
	}
	if rename {
		r.hosts = a.hosts
	}
	return r
}

func (r *redirection) Suspend() error {
	if !r.settings.Enabled {
		return nil
	}
	return redirect.Suspend()
}

func (r *redirection) Restore(remove bool) error {
	var errs []error
	for _, undo := range r.undos {
		errs = append(errs, undo())
	}
	switch {
	case !r.settings.Enabled:
	case remove:
		errs = append(errs, redirect.Remove())
	default:
		errs = append(errs, redirect.Resume())
	}
	return errors.Join(errs...)
}

// edited notes how to undo the change of a file.
func (r *redirection) edited(undo func() error, err error) error {
	if err == nil {
		r.undos = append(r.undos, undo)
	}
	return err
}

func (r *redirection) Apply(p bootstrap.Proxy) error {
	if len(r.hosts) > 0 {
		if err := r.edited(redirect.WriteHosts(redirect.HostsPath, r.hosts)); err != nil {
			return err
		}
	}
	if !r.settings.Enabled {
		return nil
	}
	s, err := redirect.NewSettings(r.settings, p, r.publicPort, r.readyPort)
	if err != nil {
		return err
	}
	if s.IPv6, err = redirect.HasIPv6(); err != nil {
		return err
	}
	if s.RedirectsIPv6() && !r.servers.IPv6() {
		r.log.Warn("outbound IPv6 connections of this task are refused: Consul has the proxy listen for them only " +
			"when its servers use IPv6, from version 1.22 on; add ::/0 to transparentProxy.excludeOutboundCIDRs " +
			"to let them leave without the proxy")
	}
	if r.settings.ConsulDNS.Enabled {
		if err := r.edited(redirect.UseConsulDNS(redirect.ResolvConfPath)); err != nil {
			return err
		}
	}
	tables := redirect.Tables(s)
	if err := redirect.Apply(tables); err != nil {
		return err
	}
	for _, t := range tables {
		r.log.Debug("redirected traffic to the proxy", logkey.Rules, t.Lines())
	}
	r.log.Info("redirected traffic to the proxy", logkey.Port, s.OutboundPort)
	return nil
}

// nameUpstreams adds the lines that mesh-init has left in dir to the hosts file of this
// container, which may be its own.
func nameUpstreams(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, workload.FileHosts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = redirect.WriteHosts(redirect.HostsPath, strings.Split(strings.TrimSpace(string(text)), "\n"))
	}
	if err != nil {
		return exit.Usagef("name the upstreams: %w: run app-entrypoint as root, or use the upstreams' addresses", err)
	}
	return nil
}
