package command

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// boto3Python finds a Python that has boto3.
func boto3Python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"aws-python", "python3"} {
		if p := testkit.Binary(name); p != "" && exec.CommandContext(t.Context(), p, "-c", "import boto3").Run() == nil {
			return p
		}
	}
	testkit.Missing(t, "boto3 not found; run 'pip install boto3'")
	return ""
}

// AWS's own client takes a service through its life, with tasks that are
// processes.
func TestBoto3DrivesServices(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	python := boto3Python(t)
	dir := filepath.Join(testkit.PublicDir(t), "state")
	data := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "services")
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("localecs", "serve", "-json", "-dir", dir, "-images", data)...)
	var exports map[string]string
	if line := p.Line(); json.Unmarshal([]byte(line), &exports) != nil {
		t.Fatalf("exports: %s", line)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join(data, "life.py"))
	// Nothing of the account of whoever runs the tests.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true"}
	for name, value := range exports {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	want := `[["created", 2, "COMPLETED", "web:1"], ["rolled over", 2, "COMPLETED", "web:1"], ["rolled back", 2, "COMPLETED", "web:1"], ` +
		`["replaced", 2, "COMPLETED", "web:1"], ["The service cannot be stopped while it is scaled above 0."], ["deleted"]]`
	if d := cmp.Diff(want, strings.TrimSpace(stdout.String())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.AllGone()
}
