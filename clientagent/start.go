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
		r.writeCAs,
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
	errs := []error{r.Options.check()}
	if err := r.secrets().Check(workload.FileClientToken, workload.FileClientTokenOwner); err != nil {
		errs = append(errs, err)
	} else if err := r.makeDir(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return &exit.UsageError{Err: err}
	}
	r.writing = true
	if len(r.Agent.RetryJoin) == 0 {
		r.Log.Warn("no retry_join address; the agent will not join a cluster unless its extra configuration names one")
	}
	return nil
}

// makeDir makes our own directory on the volume. An existing one may belong to
// another user, as whom this container ran before, but no other user may write it.
func (r *run) makeDir() error {
	dir := r.path(workload.DirClient)
	if err := os.MkdirAll(dir, modePrivateDir); err != nil {
		return fmt.Errorf("create the agent's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err == nil && (!info.IsDir() || info.Mode().Perm()&0o022 != 0) {
		err = fmt.Errorf("%s is a link or other users may write it (mode %s), who could configure the agent: remove it", dir, info.Mode())
	}
	if err == nil {
		err = volume.CheckDir(dir, fileAgent, fileExtra, fileCA)
	}
	if err != nil {
		return fmt.Errorf("check the agent's directory: %w", err)
	}
	return nil
}

func (r *run) secrets() volume.Secrets {
	return volume.Secrets{Dir: r.Config.BootstrapDir, Group: r.FileGroup, Compat: r.Compat, Log: r.Log}
}

// readMetadata reads the task until it has an address.
func (r *run) readMetadata(ctx context.Context) error {
	var noAddress error
	read := awsutil.Complete(r.Metadata.Task, func(t workload.Task) error {
		r.address, noAddress = r.Agent.address(t)
		return noAddress
	})
	var err error
	if r.task, err = awsutil.FirstTask(ctx, r.Log, read, r.Limit); err != nil {
		return err
	}
	if noAddress != nil {
		return &exit.UsageError{Err: noAddress}
	}
	r.Log = r.Log.With(logkey.TaskID, r.task.ID(), logkey.ClusterARN, r.task.ClusterARN())
	return nil
}

// writeCAs writes the CA files for which mesh-init waits, as does this command.
func (r *run) writeCAs(context.Context) error {
	for path, pem := range r.caFiles() {
		if err := volume.Write(path, []byte(pem), modePublic, volume.KeepGroup); err != nil {
			return err
		}
	}
	return nil
}

// login leaves the token to end, also that of an earlier run.
func (r *run) login(ctx context.Context) error {
	if !r.Config.ConsulLogin.Enabled {
		return nil
	}
	params := registrar.LoginParams(r.Config, r.Agent.Partition, r.task)
	params.Previous = r.secrets().Previous(workload.FileClientToken)
	r.session = r.Session(r.task, r.Log)
	var err error
	r.token, err = r.session.Login(ctx, params)
	return err
}

// writeToken writes the marker first: health-sync logs out a token without one.
// The marker is there without a login too: it means that the agent outlives the
// other containers.
func (r *run) writeToken(context.Context) error {
	owner := r.path(workload.FileClientTokenOwner)
	if err := volume.Write(owner, []byte("client-entrypoint\n"), modePublic, volume.KeepGroup); err != nil {
		return err
	}
	if r.session == nil {
		return nil
	}
	return r.secrets().Write(r.path(workload.FileClientToken), []byte(r.token.Secret), modeCompatToken)
}

// fileTask in an agent's data directory names the task that it is about.
const fileTask = "task-arn"

// ownData removes the data of another task's agent, which a volume of the host may have:
// that agent's node ID, services and tokens are not ours.
func (r *run) ownData(context.Context) error {
	data := filepath.Join(r.path(workload.DirClient), dirData)
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

// writeDocument writes our part of the agent's configuration, with a token.
func (r *run) writeDocument(secret string) error {
	dir := r.path(workload.DirClient)
	at := place{address: r.address, dataDir: filepath.Join(dir, dirData), caFile: filepath.Join(dir, fileCA)}
	text, err := r.Agent.document(at, secret)
	if err != nil {
		return err
	}
	return volume.Write(filepath.Join(dir, fileAgent), text, modePrivate, volume.KeepGroup)
}

// configure writes the agent's files. The user's come last, so they take precedence.
func (r *run) configure(context.Context) error {
	if err := r.writeDocument(r.token.Secret); err != nil {
		return err
	}
	dir := r.path(workload.DirClient)
	content := map[string][]byte{}
	files := append([]string{filepath.Join(dir, fileAgent)}, r.Agent.ExtraFiles...)
	if r.Agent.CACertPEM != "" {
		content[fileCA] = []byte(r.Agent.CACertPEM)
	}
	if r.Agent.ExtraHCL != "" {
		content[fileExtra] = []byte(r.Agent.ExtraHCL)
		files = append(files, filepath.Join(dir, fileExtra))
	}
	for name, data := range content {
		if err := volume.Write(filepath.Join(dir, name), data, modePrivate, volume.KeepGroup); err != nil {
			return err
		}
	}
	r.command = r.Agent.command(files...)
	return nil
}
