package terraform_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// devServerInput returns the required variables of modules/dev-server, with changes.
func devServerInput(changes map[string]any) map[string]any {
	input := map[string]any{
		"ecs_cluster_arn": "arn:aws:ecs:us-east-1:123456789012:cluster/mesh", "vpc_id": "vpc-1",
		"subnet_ids": []string{"subnet-1"},
	}
	maps.Copy(input, changes)
	return input
}

func TestDevServerShowsNoSecret(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/dev-server", stub.AWS6)
	w.Set(devServerInput(map[string]any{
		"acls": true, "tls": true, "gossip_encryption_enabled": true, "consul_license": "licence-text",
	}))
	applied, code := w.Run(nil, "apply", "-no-color", "-auto-approve")
	if code != 0 {
		t.Fatal(applied)
	}
	w.Unchanged()
	destroyed, code := w.Run(nil, "destroy", "-no-color", "-auto-approve")
	if code != 0 {
		t.Fatal(destroyed)
	}
	log := applied + destroyed
	for _, name := range []string{"bootstrap-token", "gossip-key", "license"} {
		if !strings.Contains(log, `aws_secretsmanager_secret_version.this["`+name+`"]`) {
			t.Errorf("the log does not show that %s is stored", name)
		}
	}
	for _, secret := range []string{stub.RandomHex(), stub.RandomHex()[:8] + "-", stub.RandomBase64(), "licence-text"} {
		if strings.Contains(log, secret) {
			t.Errorf("terraform's output shows %q", secret)
		}
	}
}

func TestDevServerErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/dev-server", stub.AWS6)
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{
			"both ways to join", map[string]any{
				"retry_join_wan": []string{"a"}, "primary_gateways": []string{"b"}, "tls": true,
				"enable_mesh_gateway_wan_federation": true,
			}, "Set retry_join_wan or primary_gateways",
		},
		{
			"token in the open", map[string]any{
				"acls": true, "generate_bootstrap_token": false, "bootstrap_token": "t",
			}, "store the token in Secrets Manager and set bootstrap_token_arn",
		},
		{
			"container without a list", map[string]any{
				"extra_container_definitions": map[string]any{"name": "log", "image": "log:1"},
			}, "extra_container_definitions must be a list of containers, each with a name.",
		},
		{
			"federation without TLS", map[string]any{"enable_mesh_gateway_wan_federation": true},
			"enable_mesh_gateway_wan_federation needs tls = true",
		},
		{"long name", map[string]any{"name": strings.Repeat("n", 64)}, "name must have 1 to 63 letters, digits or '-'"},
	} {
		t.Run(tt.name, func(t *testing.T) { // one after the other: they share a directory
			only(t, w.PlanErrors(devServerInput(tt.changes)), tt.want)
		})
	}
}

// TestDevServerScriptsRun runs the containers' commands with a real Consul, which
// makes the certificate and reads the configuration.
func TestDevServerScriptsRun(t *testing.T) {
	t.Parallel()
	consul := testkit.RequireBinary(t, "consul")
	w := tftest.New(t, "modules/dev-server", stub.AWS6)
	ca := newCA(t, consul)
	arn := func(name string) string {
		return "arn:aws:secretsmanager:us-east-1:123456789012:secret:" + name + "-AbCdEf"
	}
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    []string
	}{
		{"plain", nil, []string{"server.json"}},
		{
			"secure", map[string]any{
				"tls": true, "acls": true, "gossip_encryption_enabled": true,
				"additional_dns_names": []string{"consul.example.com"},
			},
			[]string{"consul_bootstrap_token.json", "consul_gossip_key.json", "server.json"},
		},
		{
			"secondary", map[string]any{
				"tls": true, "acls": true, "datacenter": "dc2", "primary_datacenter": "dc1", "replication_token": "r",
				"primary_gateways": []string{"10.0.0.1:8443"}, "enable_mesh_gateway_wan_federation": true,
			},
			[]string{"consul_replication_token.json", "server.json"},
		},
		{
			"joined directly", map[string]any{"retry_join_wan": []string{"10.0.0.1"}, "enable_cluster_peering": true},
			[]string{"server.json"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { // one after the other: they share a directory
			changes := map[string]any{
				"generate_ca": false, "ca_cert_arn": arn("cert"), "ca_key_arn": arn("key"),
				"generate_bootstrap_token": false, "bootstrap_token_arn": arn("token"),
				"generate_gossip_encryption_key": false, "gossip_key_secret_arn": arn("gossip"),
			}
			maps.Copy(changes, tt.changes)
			containers := plannedContainers(t, w, devServerInput(changes))
			dir := t.TempDir()
			for _, c := range containers {
				runContainer(t, c, dir, consul, ca)
			}
			if keys := filesNamed(t, dir, "ca-key.pem"); len(keys) > 0 {
				t.Errorf("the CA's key remains at %q", keys)
			}
			files, err := filepath.Glob(dir + "/opt/consul/config/*.json")
			if err != nil {
				t.Fatal(err)
			}
			for i := range files {
				files[i] = filepath.Base(files[i])
			}
			if !slices.Equal(files, tt.want) {
				t.Errorf("configuration files %q, want %q", files, tt.want)
			}
			if len(containers) == 2 && tt.name == "secure" {
				checkCertificate(t, dir+"/consul/tls/server.pem", "server.dc1", "consul.example.com",
					"server.server.dc1.consul", "server.dc1.consul")
			}
		})
	}
}

// filesNamed returns the files of one name below a directory.
func filesNamed(t *testing.T, dir, name string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// authority is a CA as PEM.
type authority struct{ certificate, key string }

func newCA(t *testing.T, consul string) authority {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), consul, "tls", "ca", "create")
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(cmd.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return authority{certificate: read("consul-agent-ca.pem"), key: read("consul-agent-ca-key.pem")}
}

// plannedContainers returns the containers of a plan in which they are known.
func plannedContainers(t *testing.T, w *tftest.Workspace, input map[string]any) (containers []taskdef.Container) {
	t.Helper()
	plan := w.Plan(input)
	if _, known := plan.Resource("aws_ecs_task_definition.this")["container_definitions"]; !known {
		plan = w.Apply(input)
	}
	plan.JSON("aws_ecs_task_definition.this", "container_definitions", &containers)
	return containers
}

// runContainer runs a container's command below a directory, with consul validate in
// place of consul agent.
func runContainer(t *testing.T, c taskdef.Container, dir, consul string, ca authority) {
	t.Helper()
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"Name":"tls-init","Networks":[{"NetworkMode":"awsvpc","IPv4Addresses":["10.1.2.3"],`+
				`"SubnetGatewayIpv4Address":"10.1.2.1/24"}]}`)
	}))
	defer metadata.Close()
	below := strings.NewReplacer("/opt/consul", dir+"/opt/consul", "/consul/tls", dir+"/consul/tls",
		"exec consul agent -config-dir=", "exec consul validate ")
	environment := map[string]string{
		"PATH": filepath.Dir(consul) + ":" + os.Getenv("PATH"), "ECS_CONTAINER_METADATA_URI_V4": metadata.URL,
		"CONSUL_CA_CERT": ca.certificate, "CONSUL_CA_KEY": ca.key,
		"CONSUL_GOSSIP_KEY": stub.RandomBase64(),
	}
	for _, e := range c.Environment {
		environment[e.Name] = below.Replace(e.Value)
	}
	for _, s := range c.Secrets {
		if environment[s.Name] == "" {
			environment[s.Name] = "value-of-" + s.Name
		}
	}
	cmd := exec.CommandContext(t.Context(), c.EntryPoint[0], c.EntryPoint[1], below.Replace(c.Command[0]))
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", c.Name, err, cmd.Args[2], out)
	}
}

func checkCertificate(t *testing.T, path string, names ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "10.1.2.3", "127.0.0.1", "localhost") {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}
