package meshinit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/internal/atomicfile"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// Modes of the files (design decision 7). The public ones are version 0.6's,
// and are right for a bootstrap without a token.
const (
	modeSecret          = 0o640
	modePublicToken     = 0o644
	modePublicBootstrap = 0o444
)

func (r *run) writeBootstrap(ctx context.Context) error {
	token := r.token.Secret
	if token == "" {
		token = r.agent.Token
	}
	grpc, err := r.GRPC.resolve(ctx)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	data, err := bootstrap.Generate(bootstrap.Params{
		Proxy: r.proxy, ProxyID: r.workload.Proxy.ID, Token: token, GRPC: grpc, ReadyBind: r.ReadyBind, Env: r.Env,
	})
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("generate the bootstrap of proxy %q: %w", r.workload.Proxy.ID, err)}
	}
	path := filepath.Join(r.Config.BootstrapDir, workload.FileBootstrap)
	if token == "" {
		return r.write(path, data, modePublicBootstrap, atomicfile.KeepGroup)
	}
	return r.writeSecret(path, data, modePublicBootstrap)
}

func (r *run) writeToken(context.Context) error {
	if r.token.Secret == "" {
		return nil
	}
	return r.writeSecret(r.tokenPath(), []byte(r.token.Secret), modePublicToken)
}

// writeSecret writes a file for us and the file group, or with -compat for
// everybody.
func (r *run) writeSecret(path string, data []byte, compat os.FileMode) error {
	if r.Compat {
		return r.write(path, data, compat, atomicfile.KeepGroup)
	}
	if r.FileGroup != GroupOfBootstrapDir {
		return r.write(path, data, modeSecret, r.FileGroup)
	}
	gid, err := groupOf(r.Config.BootstrapDir)
	if err != nil {
		return err
	}
	err = r.write(path, data, modeSecret, gid)
	if errors.Is(err, fs.ErrPermission) {
		// We may write here without belonging to the directory's group.
		r.Log.Warn("file keeps our own group: we are not in the directory's; other containers that must read it need this group, or use -file-group or -compat",
			logkey.Path, path, logkey.Error, err)
		return r.write(path, data, modeSecret, atomicfile.KeepGroup)
	}
	return err
}

func (r *run) write(path string, data []byte, mode os.FileMode, gid int) error {
	if err := atomicfile.Write(path, data, mode, gid); err != nil {
		return err
	}
	r.written = append(r.written, path)
	return nil
}

func groupOf(dir string) (int, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, fmt.Errorf("find the group of bootstrapDir: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid), nil
	}
	return atomicfile.KeepGroup, nil
}

// startCopy begins to copy this program: the one slow thing that waits for
// nobody, done while requests are under way.
func (r *run) startCopy(context.Context) error {
	path := filepath.Join(r.Config.BootstrapDir, workload.FileBinary)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		// One that is there already is in use: it is replaced, never removed.
		r.written = append(r.written, path)
	}
	copying := make(chan error, 1)
	go func() { copying <- r.CopyProgram(path) }()
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
