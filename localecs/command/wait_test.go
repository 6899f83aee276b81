package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
)

// A run that is over before it was found once is not waited for.
func TestWaitReadsTheLastStateOfAShortRun(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	file := filepath.Join(top, "job", control.EndFile)
	const state = `{"name": "job", "command": "run", "directory": "/gone/job", "ended": true, "planned": [], "services": [], "tasks": [{
		"name": "job", "taskArn": "arn:aws:ecs:us-east-1:123456789012:task/default/aaaa", "lastStatus": "STOPPED", "desiredStatus": "STOPPED", "stopCode": "EssentialContainerExited",
		"containers": [{"name": "app", "essential": true, "lastStatus": "STOPPED", "startedAt": "2024-01-02T03:04:05Z", "finishedAt": "2024-01-02T03:04:06.5Z", "exitCode": 3}]}]}`
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) (code int, stdout, stderr string) {
		var out, said bytes.Buffer
		code = cli.Main(cli.App{Name: "localecs", Commands: remoteCommands()}, append([]string{"wait", "-dir", top}, args...), func(string) string { return "" }, strings.NewReader(""), &out, &said)
		return code, out.String(), said.String()
	}
	end := func(at time.Time) {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	end(time.Now().Add(time.Hour)) // while wait looks
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"job"}, 0, "3\n", ""},
		{[]string{"-healthy", "job"}, 1, "", "localecs wait: the run has ended; job is STOPPED"},
		{[]string{"other"}, 1, "", "localecs wait: the run has ended; no task other; want one of job"},
	} {
		code, stdout, stderr := call(c.args...)
		if code != c.code {
			t.Errorf("%v: got exit code %d, want %d", c.args, code, c.code)
		}
		if stdout != c.stdout {
			t.Errorf("%v: got stdout %q, want %q", c.args, stdout, c.stdout)
		}
		if !strings.HasPrefix(stderr, c.stderr) {
			t.Errorf("%v: got stderr %q, want prefix %q", c.args, stderr, c.stderr)
		}
	}
	end(time.Now().Add(-time.Hour)) // another one may be about to begin
	if code, stdout, stderr := call("-timeout", "300ms", "job"); code != 1 || stdout != "" || !strings.HasPrefix(stderr, "localecs wait: timed out after 300ms: nothing runs below ") || !strings.HasSuffix(stderr, "; the run in /gone/job had ended before the wait started\n") {
		t.Errorf("a run of an hour ago: exit code %d, %q, %q", code, stdout, stderr)
	}
}
