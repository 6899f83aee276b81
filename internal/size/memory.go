package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// settle is how long a command runs before its memory counts: health-sync has
// refreshed its check once by then, and what only the start needed is released.
const settle = 12 * time.Second

// metadata is a running task with one healthy container, and that container's
// Name: it answers the base URI, too.
const metadata = `{"Name": "app", "Cluster": "arn:aws:ecs:us-west-2:111122223333:cluster/size",
"TaskARN": "arn:aws:ecs:us-west-2:111122223333:task/size/0123456789abcdef0123456789abcdef",
"Family": "size", "Revision": "1", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
"Containers": [{"Name": "app", "Type": "NORMAL", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
"Health": {"status": "HEALTHY", "statusSince": "2026-01-01T00:00:00Z", "exitCode": 0},
"Networks": [{"NetworkMode": "awsvpc", "IPv4Addresses": ["127.0.0.1"]}]}]}`

// memoryRows runs the in-task commands.
func memoryRows(ctx context.Context, dir, program string) ([]row, error) {
	ecs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, metadata)
	}))
	defer ecs.Close()
	agent, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		return nil, fmt.Errorf("start consul: %w", err)
	}
	if agent == nil {
		return nil, errors.New("memory not measured: consul not found: run 'make tools'")
	}
	defer agent.Stop()
	s := shell{program: program, env: append(os.Environ(),
		fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"service":{"port":8080},"healthSyncContainers":["app"]}`,
			dir),
		"ECS_CONTAINER_METADATA_URI_V4="+ecs.URL, "CONSUL_HTTP_ADDR="+agent.HTTPAddr,
		"CONSUL_GRPC_ADDR="+agent.GRPCAddr)}

	var peaks []row
	for _, c := range []struct {
		comment string
		args    []string
	}{
		{"peak", []string{"mesh-init"}},
		{"peak", []string{"install", "-to", dir}}, // from here on the file is a copy, as in a task
		{"peak; goal 10", []string{"net-dial", agent.HTTPAddr}},
	} {
		mb, err := s.peak(ctx, c.args...)
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, row{c.args[0], mb, c.comment})
	}
	// In place of Consul: only the memory of what runs it is wanted.
	child := filepath.Join(dir, "child")
	if err := os.WriteFile(child, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		return nil, err
	}
	rows, err := s.atRest(ctx, child)
	return append(rows, peaks...), err
}

// shell runs the program in a task's environment.
type shell struct {
	program string
	env     []string
}

func (s shell) command(ctx context.Context, log *bytes.Buffer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	cmd.WaitDelay = time.Second
	return cmd
}

// peak returns the most memory that a command has used when it exits. The rusage of a child cannot measure it: its
// value starts with the parent's.
func (s shell) peak(ctx context.Context, args ...string) (float64, error) {
	var log bytes.Buffer
	cmd := s.command(ctx, &log, args...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	most := 0.0
	for {
		select {
		case err := <-ended:
			if err != nil {
				return 0, fmt.Errorf("%s: %w: %s", args[0], err, &log)
			}
			return most, nil
		default:
			if mb, err := memory(cmd.Process.Pid, "VmHWM"); err == nil {
				most = max(most, mb)
			}
		}
	}
}

// atRest measures the memory of the commands that run as long as their task, all at the same time.
func (s shell) atRest(ctx context.Context, child string) ([]row, error) {
	var rows []row
	var stops []func() error
	var logs [4]bytes.Buffer
	var cmds []*exec.Cmd
	defer func() {
		for _, cmd := range cmds {
			cmd.Process.Kill() // for an early return; else it has ended
		}
	}()
	for i, c := range []struct {
		end     os.Signal // what ends it, and a wrapped program with it
		comment string
		args    []string
	}{
		{syscall.SIGTERM, "goal 13", []string{"health-sync"}},
		{syscall.SIGINT, "goal 10; without its child", []string{"envoy-entrypoint", child}},
		{syscall.SIGINT, "goal 10; without its child", []string{"app-entrypoint", child}},
		{
			syscall.SIGTERM, "without its child",
			[]string{"client-entrypoint", "-retry-join=127.0.0.1", "-stop-timeout=11s", "-consul-path=" + child},
		},
	} {
		cmd := s.command(ctx, &logs[i], c.args...)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
		rows = append(rows, row{c.args[0], 0, c.comment})
		stops = append(stops, func() error { return stop(cmd, c.end) })
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	var errs []error
	for i, cmd := range cmds {
		mb, err := memory(cmd.Process.Pid, "VmRSS")
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", rows[i].what, err, &logs[i])
		}
		own, ownErr := memory(cmd.Process.Pid, "RssAnon")
		rows[i].mb, rows[i].comment = mb, fmt.Sprintf("%.1f without the program's file; %s", own, rows[i].comment)
		err = errors.Join(err, ownErr)
		errs = append(errs, err, stops[i]())
	}
	return rows, errors.Join(errs...)
}

// stop ends a command. Its exit code is ignored: it is a wrapped program's.
func stop(cmd *exec.Cmd, sig os.Signal) error {
	if err := cmd.Process.Signal(sig); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// memory reads a value of /proc/<pid>/status, in MB.
func memory(pid int, key string) (float64, error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), key+":")
	number, _, kib := strings.Cut(rest, " kB")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if !found || !kib || err != nil {
		return 0, fmt.Errorf("no %s: the process has ended", key)
	}
	return float64(n) * 1024 / 1e6, nil
}
