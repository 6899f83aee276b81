package subcommand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/doctor"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// examined runs doctor -json and returns its exit code and the findings.
func examined(t *testing.T, env map[string]string, args ...string) (int, []doctor.Finding) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := cli.App{Name: "consul-ecs", Commands: commands()}
	args = append([]string{"doctor", "-json"}, args...)
	code := cli.Main(app, args, func(k string) string { return env[k] }, strings.NewReader(""), &stdout, &stderr)
	var findings []doctor.Finding
	if err := json.Unmarshal(stdout.Bytes(), &findings); err != nil {
		t.Fatalf("%v in %q, stderr %q", err, stdout.String(), stderr.String())
	}
	return code, findings
}

// results returns the result of each check with its ID.
func results(findings []doctor.Finding) map[string]string {
	all := map[string]string{}
	for _, f := range findings {
		all[f.Check] = strings.TrimSpace(string(f.Result) + " " + string(f.ID))
	}
	return all
}

func TestDoctorOutsideOfATask(t *testing.T) {
	t.Parallel()
	code, findings := examined(t, nil)
	testkit.Equal(t, "exit code", code, exit.CodeRefused)
	want := map[string]string{
		"configuration": "skipped", "task metadata": "failed CE-METADATA-ENV", "mesh-init": "skipped",
	}
	if diff := cmp.Diff(want, results(findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDoctorBeforeMeshInit examines a task whose servers refuse connections.
func TestDoctorBeforeMeshInit(t *testing.T) {
	t.Parallel()
	host, port, err := net.SplitHostPort(testkit.ClosedAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	code, findings := examined(t, map[string]string{
		config.EnvVar: `{"bootstrapDir": "` + t.TempDir() + `", "service": {"name": "web", "port": 80},
			"consulServers": {"hosts": "` + host + `", "http": {"port": ` + port + `, "https": false},
			"grpc": {"port": ` + port + `, "tls": false}}}`,
	})
	testkit.Equal(t, "exit code", code, exit.CodeRefused)
	want := map[string]string{
		"configuration": "ok", "task metadata": "failed CE-METADATA-ENV", "AWS identity": "skipped",
		"task role": "skipped", "Consul HTTP": "failed CE-CONSUL-REFUSED", "Consul gRPC": "failed CE-CONSUL-GRPC",
		"mesh-init": "skipped",
	}
	if diff := cmp.Diff(want, results(findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDoctorAsksOnce checks that the checks of one examination share the task's metadata and its identity.
func TestDoctorAsksOnce(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	var reads, sts, iam atomic.Int32
	m.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/task" {
			reads.Add(1)
		}
		io.WriteString(w, task("RUNNING", "RUNNING", "RUNNING"))
	})
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if form, _ := io.ReadAll(r.Body); strings.Contains(string(form), "GetRole") {
			iam.Add(1)
			fmt.Fprint(w, "<GetRoleResponse><GetRoleResult><Role><Arn>arn:aws:iam::111122223333:role/web</Arn></Role>"+
				"</GetRoleResult></GetRoleResponse>")
			return
		}
		sts.Add(1)
		fmt.Fprint(w, "<GetCallerIdentityResponse><GetCallerIdentityResult>"+
			"<Arn>arn:aws:sts::111122223333:assumed-role/web/s</Arn>"+
			"</GetCallerIdentityResult></GetCallerIdentityResponse>")
	}))
	t.Cleanup(aws.Close)
	host, port, err := net.SplitHostPort(testkit.ClosedAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(m.env(), "AWS_ENDPOINT_URL_IAM="+aws.URL,
		"AWS_ACCESS_KEY_ID=AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
		config.EnvVar+`={"bootstrapDir": "`+dir+`", "service": {"name": "web", "port": 80},
			"consulLogin": {"enabled": true, "method": "web", "stsEndpoint": "`+aws.URL+`"},
			"consulServers": {"hosts": "`+host+`", "http": {"port": `+port+`, "https": false},
			"grpc": {"port": `+port+`, "tls": false}}}`)
	p := consulECS(t, env, "doctor", "-json", "-bundle", filepath.Join(dir, "ticket.tar.gz"))
	testkit.Equal(t, "exit code", p.Wait(), exit.CodeRefused)
	testkit.Equal(t, "reads of the metadata", reads.Load(), 1)
	testkit.Equal(t, "requests to STS", sts.Load(), 1)
	testkit.Equal(t, "requests to IAM", iam.Load(), 1)
}

func TestDoctorNamesAWrongConfiguration(t *testing.T) {
	t.Parallel()
	_, findings := examined(t, map[string]string{config.EnvVar: `{"service": {"port": "x"}}`})
	testkit.Equal(t, "configuration", results(findings)["configuration"], "failed CE-CONFIG-INVALID")
}

func TestDoctorOfATaskDefinition(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "web.json")
	const text = `{"family": "web", "networkMode": "bridge",
		"containerDefinitions": [{"name": "web", "image": "web:1"}],
		"tags": [{"key": "consul.hashicorp.com/mesh-inject", "value": "true"}]}`
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, findings := examined(t, nil, "-offline", broken)
	testkit.Equal(t, "exit code", code, exit.CodeRefused)
	if failed := doctor.FailedOf(findings); len(failed) == 0 || !strings.HasPrefix(string(failed[0].ID), "ADM-") {
		t.Errorf("got %+v, want failures with codes of admit", findings)
	}
	code, findings = examined(t, nil, "-offline", filepath.Join(testkit.Root(), "examples", "hello-mesh", "web.json"))
	testkit.Equal(t, "exit code of a good one", code, exit.CodeOK)
	testkit.Equal(t, "a good one", results(findings)["task definition"], "ok")
}

func TestDoctorUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"two files":         {[]string{"a", "b"}, "want one FILE"},
		"bundle of a file":  {[]string{"-bundle", "x", "a"}, "-bundle is for a task"},
		"file that is none": {[]string{"-offline", "/nonexistent"}, "/nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stderr := runCommand(nil, append([]string{"doctor"}, c.args...)...)
			testkit.Equal(t, "exit code", code, exit.CodeUsage)
			if !strings.Contains(stderr, c.want) {
				t.Errorf("got %q, want %q in it", stderr, c.want)
			}
		})
	}
}
