package clientagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

// files are the files of the agent on the volume.
type files struct {
	options *Options
	deps    *Deps
}

// makeDir makes our own directory on the volume. An existing one may belong to
// another user, as whom this container ran before, but no other user may write it.
func (f files) makeDir() error {
	dir := f.options.path(workload.DirClient)
	if err := os.MkdirAll(dir, modePrivateDir); err != nil {
		return fmt.Errorf("create the agent's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err == nil && (!info.IsDir() || info.Mode().Perm()&0o022 != 0) {
		err = fmt.Errorf("%s is a link or other users may write it (mode %s), who could configure the agent: remove it",
			dir, info.Mode())
	}
	if err == nil {
		err = volume.CheckDir(dir, fileAgent, fileExtra, fileCA)
	}
	if err != nil {
		return fmt.Errorf("check the agent's directory: %w", err)
	}
	return nil
}

func (f files) secrets() volume.Secrets {
	return volume.Secrets{Dir: f.options.Config.BootstrapDir, Group: f.options.FileGroup, Compat: f.options.Compat,
		Log: f.deps.Log}
}

// writeCAs writes the CA files for which mesh-init waits, as does this command.
func (f files) writeCAs(context.Context) error {
	for path, pem := range f.options.caFiles() {
		if err := volume.Write(path, []byte(pem), modePublic, volume.KeepGroup); err != nil {
			return err
		}
	}
	return nil
}

// writeDocument writes our part of the agent's configuration, with a token.
func (f files) writeDocument(address, secret string) error {
	dir := f.options.path(workload.DirClient)
	at := nodeLocation{address: address, dataDir: filepath.Join(dir, dirData), caFile: filepath.Join(dir, fileCA)}
	text, err := f.options.Agent.document(at, secret)
	if err != nil {
		return err
	}
	return volume.Write(filepath.Join(dir, fileAgent), text, modePrivate, volume.KeepGroup)
}

func (f files) remove(with func(string) error, paths ...string) {
	for _, path := range paths {
		if err := with(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.deps.Log.Error("file was not removed", logkey.Path, path, logkey.Error, err)
		}
	}
}

// nodeID returns the agent's node ID, empty when there is none.
func (f files) nodeID() (string, error) {
	id, err := os.ReadFile(filepath.Join(f.options.path(workload.DirClient), dirData, fileNodeID))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(id)), err
}
