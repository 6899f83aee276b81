package clientagent

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// Options are the settings of the user.
type Options struct {
	// Config has the volume (BootstrapDir), the servers (ConsulHTTPAddr,
	// ConsulCACertFile) and the login: ConsulLogin.Enabled means that ACLs are
	// on, Method is the clients'.
	Config *config.Config
	Agent  Agent
	// HTTPSCACertPEM verifies ConsulHTTPAddr; empty leaves that to
	// ServerCAFile.
	HTTPSCACertPEM string
	// Compat gives client-token the mode of version 0.6.
	Compat bool
	// FileGroup is the group ID of client-token, or volume.GroupOfDir.
	FileGroup int
	// Ignore names containers that the agent does not wait for.
	Ignore workload.Ignored
	// StopTimeout is the time between TERM and KILL.
	StopTimeout time.Duration
	// Limit bounds each wait at start: for metadata and for a login.
	Limit time.Duration
}

// check returns all mistakes that can be found in the options alone.
func (o Options) check() error {
	var errs []error
	wrong := func(is bool, message string) {
		if is {
			errs = append(errs, errors.New(message))
		}
	}
	login, a := o.Config.ConsulLogin.Enabled, o.Agent
	wrong(login && o.Config.ConsulHTTPAddr == "",
		"ACLs need -consul-http-addr, CONSUL_HTTP_ADDR or consulHTTPAddr: the address of the Consul servers, since "+
			"the agent does not run at login and logout")
	wrong(a.AuditLogging && !login, "-audit-logging needs ACLs: add -acls")
	wrong(a.TokenReplication && !login, "-enable-acl-token-replication needs ACLs: add -acls")
	wrong(a.CACertPEM != "" && !isPEM(a.CACertPEM), "CONSUL_CACERT_PEM holds no PEM certificate")
	wrong(o.HTTPSCACertPEM != "" && !isPEM(o.HTTPSCACertPEM), "CONSUL_HTTPS_CACERT_PEM holds no PEM certificate")
	wrong(a.GossipKey != "" && !isGossipKey(a.GossipKey),
		"CONSUL_GOSSIP_ENCRYPTION_KEY: want 16, 24 or 32 bytes in base64, as consul keygen makes them")
	for _, path := range a.ExtraFiles {
		if err := checkExtraFile(path); err != nil {
			errs = append(errs, fmt.Errorf("-agent-config-file: %w", err))
		}
	}
	if _, err := exec.LookPath(a.Program); err != nil {
		errs = append(errs,
			fmt.Errorf("-consul-path: %w: run this container from Consul's image, or name the program in yours", err))
	}
	return errors.Join(errs...)
}

// checkExtraFile refuses what consul would refuse after the login: it recognizes
// the language of a file by its name, and ignores other files of a directory.
func checkExtraFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && !slices.Contains([]string{".hcl", ".json"}, filepath.Ext(path)) {
		return fmt.Errorf("%s: want a name that ends in .hcl or .json", path)
	}
	return nil
}

func isPEM(text string) bool { return x509.NewCertPool().AppendCertsFromPEM([]byte(text)) }

func isGossipKey(text string) bool {
	key, err := base64.StdEncoding.DecodeString(text)
	return err == nil && slices.Contains([]int{16, 24, 32}, len(key))
}

// ServerCAFile returns the path of the file that verifies the servers' HTTP address: the
// document's, unless that is of another container's image and HTTPSCACertPEM is
// set. Empty leaves it to the Consul environment.
func (o Options) ServerCAFile() string {
	named := o.Config.ConsulCACertFile
	if o.HTTPSCACertPEM == "" || o.onVolume(named) {
		return named
	}
	return o.path(workload.FileHTTPSCACert)
}

// caFiles returns the CA certificates for mesh-init and health-sync, by path. What
// their configuration names on the volume is written: mesh-init waits for it.
func (o Options) caFiles() map[string]string {
	files := map[string]string{}
	if pem := o.Agent.CACertPEM; pem != "" {
		files[o.path(workload.FileCACert)] = pem
		if named := o.Config.ConsulCACertFile; o.onVolume(named) {
			files[named] = pem
		}
	}
	if o.HTTPSCACertPEM != "" {
		files[o.ServerCAFile()] = o.HTTPSCACertPEM
	}
	return files
}

func (o Options) onVolume(path string) bool {
	return strings.HasPrefix(filepath.Clean(path), filepath.Clean(o.Config.BootstrapDir)+"/")
}

// path returns the path of one of our files.
func (o Options) path(name string) string { return filepath.Join(o.Config.BootstrapDir, name) }
