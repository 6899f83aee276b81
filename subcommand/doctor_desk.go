package subcommand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/doctor"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// examineDefinition checks a task definition by admit, and returns what that finds. The error is one of usage.
func (o *doctorOptions) examineDefinition(ctx context.Context, inv *cli.Invocation) ([]doctor.Finding, error) {
	a := o.desk
	a.output, a.role.check = outputReport, !o.offline
	if o.offline {
		a.check.engine = checkNone
	}
	var printed bytes.Buffer
	desk := *inv
	desk.Stdout, desk.Stderr = &printed, io.Discard
	failed := a.run(ctx, &desk)
	var report admitReport
	if err := json.Unmarshal(printed.Bytes(), &report); err != nil {
		return nil, errors.Join(failed) // it was not examined
	}
	findings := []doctor.Finding{}
	for _, f := range report.Findings {
		found := doctor.Finding{
			Check: f.Path, Result: doctor.Warned, Found: f.Message, ID: failure.ID(f.Code), Fix: f.Fix,
		}
		switch f.Severity {
		case taskdef.Error:
			found.Result = doctor.Failed
		case taskdef.Warn:
		default:
			continue
		}
		findings = append(findings, found)
	}
	if report.Error != "" {
		findings = append(findings, doctor.Finding{Check: "AWS", Result: doctor.Skipped, Found: report.Error})
	}
	if len(doctor.FailedOf(findings)) == 0 {
		findings = append(findings, doctor.Finding{Check: "task definition", Result: doctor.OK,
			Found: fmt.Sprintf("admitted, injected: %t", report.Injected)})
	}
	return findings, nil
}

// bundle writes the archive for a ticket.
func (p *patient) bundle(ctx context.Context, path string, findings []doctor.Finding) error {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	files := []doctor.File{
		{Name: "findings.json", Data: marshalled(findings)},
		{Name: "version.json", Data: marshalled(map[string]string{"version": cli.Version()})},
		{Name: "environment.json", Data: marshalled(names)},
	}
	if text := p.inv.Getenv(config.EnvVar); text != "" {
		files = append(files, doctor.File{Name: "config.json", Data: []byte(text)})
	}
	if task, err := p.task(ctx); err == nil {
		files = append(files, doctor.File{Name: "task.json", Data: marshalled(task)})
	}
	for _, name := range []string{workload.FileStatus, workload.FileBootstrap, workload.FileRelay} {
		if data, err := os.ReadFile(filepath.Join(p.dir, name)); err == nil {
			files = append(files, doctor.File{Name: name, Data: data})
		}
	}
	limited, cancel := context.WithTimeout(ctx, doctor.Limit)
	defer cancel()
	for _, answer := range []struct{ name, path string }{ // the largest one last
		{"server_info.json", "/server_info"}, {"stats.txt", "/stats?usedonly"}, {"certs.json", "/certs"},
		{"listeners.json", "/listeners?format=json"}, {"clusters.json", "/clusters?format=json"},
		{"config_dump.json", "/config_dump"},
	} {
		if data, err := p.askEnvoy(limited, answer.path); err == nil {
			files = append(files, doctor.File{Name: "envoy/" + answer.name, Data: data})
		}
	}
	var archive bytes.Buffer
	if err := doctor.Bundle(&archive, files, p.secrets(), time.Now()); err != nil {
		return err
	}
	if path == "-" {
		_, err := p.inv.Stdout.Write(archive.Bytes())
		return err
	}
	return volume.Write(path, archive.Bytes(), 0o600, volume.KeepGroup)
}

func marshalled(v any) []byte {
	text, _ := json.Marshal(v) // of strings and numbers
	return text
}

// secrets returns the tokens that this container can read.
func (p *patient) secrets() (all []secret.Value) {
	for _, name := range []string{workload.FileServiceToken, workload.FileClientToken} {
		if text, err := volume.ReadSecret(filepath.Join(p.dir, name)); err == nil {
			all = append(all, secret.New(text))
		}
	}
	for _, name := range []string{"CONSUL_HTTP_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		all = append(all, secret.New(p.inv.Getenv(name)))
	}
	return all
}
