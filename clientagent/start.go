package clientagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// Modes of files. Only the user of this container may read our directory on the volume.
const (
	modePrivateDir  = 0o700
	modePrivate     = 0o600
	modePublic      = 0o644
	modeCompatToken = 0o644
)

// Names in our directory.
const (
	fileAgent = "agent.json"
	fileExtra = "extra.hcl"
	fileCA    = "ca.pem"
	dirData   = "data"
)

// steps executes the steps before the agent's start. The checks come first, so
// that a mistake is found before a token exists.
func (r *run) steps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.check,
		r.readMetadata,
		r.files.writeCAs,
		r.login,
		r.writeToken,
		r.ownData,
		r.configure,
	} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check finds every mistake that can be found without a request.
func (r *run) check(context.Context) error {
	errs := []error{r.options.check()}
	if err := r.files.secrets().Check(workload.FileClientToken, workload.FileClientTokenOwner); err != nil {
		errs = append(errs, err)
	} else if err := r.files.makeDir(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return &exit.UsageError{Err: err}
	}
	r.writing = true
	if len(r.options.Agent.RetryJoin) == 0 {
		r.deps.Log.Warn("no retry_join address; the agent will not join a cluster unless its extra configuration " +
			"names one")
	}
	return nil
}

// readMetadata reads the task until it has an address.
func (r *run) readMetadata(ctx context.Context) error {
	use := func(t workload.Task) (err error) {
		r.address, err = r.options.Agent.address(t)
		return err
	}
	var err error
	r.task, err = awsutil.FirstUsableTask(ctx, r.deps.Log, r.deps.Metadata.Task, r.options.Limit, use)
	if err != nil {
		return err
	}
	r.deps.Log = r.deps.Log.With(logkey.TaskID, r.task.ID(), logkey.ClusterARN, r.task.ClusterARN())
	return nil
}

// login leaves the token to end, also that of an earlier run.
func (r *run) login(ctx context.Context) error {
	if !r.options.Config.ConsulLogin.Enabled {
		return nil
	}
	params := registrar.LoginParams(r.options.Config, r.options.Agent.Partition, r.task)
	params.Previous = r.files.secrets().Previous(workload.FileClientToken)
	r.session = r.deps.Session(r.task, r.deps.Log)
	var err error
	r.token, err = r.session.Login(ctx, params)
	return err
}

// writeToken writes the marker first: health-sync logs out a token without one.
// The marker is there without a login too: it means that the agent outlives the
// other containers.
func (r *run) writeToken(context.Context) error {
	owner := r.options.path(workload.FileClientTokenOwner)
	if err := volume.Write(owner, []byte("client-entrypoint\n"), modePublic, volume.KeepGroup); err != nil {
		return err
	}
	if r.session == nil {
		return nil
	}
	return r.files.secrets().Write(r.options.path(workload.FileClientToken), []byte(r.token.Secret), modeCompatToken)
}

// fileTask in an agent's data directory names the task that it is about.
const fileTask = "task-arn"

// ownData removes the data of another task's agent, which a volume of the host may have:
// that agent's node ID, services and tokens are not ours.
func (r *run) ownData(context.Context) error {
	data := filepath.Join(r.options.path(workload.DirClient), dirData)
	path := filepath.Join(data, fileTask)
	owner, err := os.ReadFile(path)
	switch {
	case err == nil && string(owner) == r.task.TaskARN:
		return nil
	case err == nil, errors.Is(err, fs.ErrNotExist):
		err = os.RemoveAll(data)
	}
	if err == nil {
		err = os.Mkdir(data, modePrivateDir)
	}
	if err != nil {
		return fmt.Errorf("prepare the agent's data directory: %w", err)
	}
	return volume.Write(path, []byte(r.task.TaskARN), modePrivate, volume.KeepGroup)
}

// configure writes the agent's files. The user's come last, so they take precedence.
func (r *run) configure(context.Context) error {
	if err := r.files.writeDocument(r.address, r.token.Secret); err != nil {
		return err
	}
	dir := r.options.path(workload.DirClient)
	content := map[string][]byte{}
	files := append([]string{filepath.Join(dir, fileAgent)}, r.options.Agent.ExtraFiles...)
	if r.options.Agent.CACertPEM != "" {
		content[fileCA] = []byte(r.options.Agent.CACertPEM)
	}
	if r.options.Agent.ExtraHCL != "" {
		content[fileExtra] = []byte(r.options.Agent.ExtraHCL)
		files = append(files, filepath.Join(dir, fileExtra))
	}
	for name, data := range content {
		if err := volume.Write(filepath.Join(dir, name), data, modePrivate, volume.KeepGroup); err != nil {
			return err
		}
	}
	r.command = r.options.Agent.command(files...)
	return nil
}
