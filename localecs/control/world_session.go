package control

import (
	"context"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Attach implements control.World.
func (w *RegionWorld) Attach(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	b, err := w.find(r.TaskID)
	if err == nil && b.Task == nil {
		err = b.Err
	}
	if err != nil {
		return runtime.CodeFailed, err
	}
	return b.Task.Attach(ctx, r.Container, s)
}

// Visit implements control.World.
func (w *RegionWorld) Visit(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	own := w.Region.Environment()
	if w.Consul != nil {
		if c := w.Consul(); c != nil {
			own = append(own, "CONSUL_HTTP_ADDR="+c.Address, "CONSUL_HTTP_TOKEN="+c.Token)
		}
	}
	return w.Region.Cluster().Visitors().Visit(ctx, cluster.Visitor{
		Session: s, Path: r.Path, Dir: r.Directory, Env: environment(r.Env, own), Umask: r.Umask,
	})
}

// environment is a program's with the run's own variables in it, and without those
// that lead elsewhere: to other credentials, or to proxies, which the cluster's
// network does not reach.
func environment(theirs, own []string) []string {
	elsewhere := []string{
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "CONSUL_HTTP_SSL", "CONSUL_NAMESPACE", "CONSUL_PARTITION",
	}
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		elsewhere = append(elsewhere, name)
	}
	kept := slices.DeleteFunc(slices.Clone(theirs), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(elsewhere, strings.ToUpper(name))
	})
	return append(kept, own...)
}
