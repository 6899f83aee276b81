package meshinit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/workload"
)

// Modes that files have in version 0.6. They are right for a bootstrap without a
// token.
const (
	modePublicToken     = 0o644
	modePublicBootstrap = 0o444
)

// writeProxyFiles writes what the proxy starts from.
func (r *run) writeProxyFiles(ctx context.Context) error {
	token := r.token
	token.Secret = cmp.Or(token.Secret, r.consul.Token)
	files, err := r.options.Proxy.Files(ctx, r.workload, r.proxy, token)
	if err != nil {
		return &exit.UsageError{Err: fmt.Errorf("prepare the start of proxy %q: %w", r.workload.Proxy.ID, err)}
	}
	for _, f := range files {
		path := r.path(f.Name)
		if f.Secret {
			err = r.writeSecret(path, f.Data, modePublicBootstrap)
		} else {
			err = r.recordWritten(path, volume.Write(path, f.Data, modePublicBootstrap, volume.KeepGroup))
		}
		if err != nil {
			return err
		}
	}
	for _, name := range proxyFileNames() {
		if slices.ContainsFunc(files, func(f File) bool { return f.Name == name }) {
			continue
		}
		// It may be another task's, on a host's volume.
		if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a stale file: %w", err)
		}
	}
	return nil
}

func (r *run) writeToken(context.Context) error {
	if r.token.Secret == "" {
		return nil
	}
	return r.writeSecret(r.path(workload.FileServiceToken), []byte(r.token.Secret), modePublicToken)
}

// writeSecret writes a file with the token, which the process, the file group and the
// proxy's user may read, with -compat every user. The user is for task definitions of
// hashicorp/consul-ecs, in which the proxy does not have the group.
func (r *run) writeSecret(path string, data []byte, compat os.FileMode) error {
	err := r.recordWritten(path, r.secrets().Write(path, data, compat))
	r.stored = r.stored || err == nil
	if err != nil || r.options.Compat {
		return err
	}
	if err := volume.AllowReader(path, redirect.ProxyUID, volume.ModeSecret); err != nil {
		r.deps.Log.Info("only the file's group may read it, which the proxy then needs",
			logkey.Path, path, logkey.Reason, err)
	}
	return nil
}

func (r *run) secrets() volume.Secrets {
	return volume.Secrets{Dir: r.options.Config.BootstrapDir, Group: r.options.FileGroup, Compat: r.options.Compat,
		Log: r.deps.Log}
}

// recordWritten keeps the name of a file that was written, to remove it if the run fails.
func (r *run) recordWritten(path string, err error) error {
	if err == nil {
		r.written = append(r.written, path)
	}
	return err
}

// startCopy starts to copy this program, which takes long and needs no other step,
// while the requests are sent.
func (r *run) startCopy(context.Context) error {
	path := r.path(workload.FileBinary)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		// One that is there already is in use: it is replaced, never removed.
		r.written = append(r.written, path)
	}
	copying := make(chan error, 1)
	go func() { copying <- r.deps.CopyProgram(path) }()
	r.copying = copying
	return nil
}

// finishCopy waits for the copy, if one is under way. After an error of ctx it
// still is.
func (r *run) finishCopy(ctx context.Context) error {
	if r.copying == nil {
		return nil
	}
	select {
	case err := <-r.copying:
		r.copying = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("copy this program: %w", context.Cause(ctx))
	}
}
