package clientagent

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const gossipKey = "SpqUdNPPBSYDMaXUKJ4Z9sZC8BKCAbNuV6NpyVZ3yQM="

// variant is one way to configure the agent.
type variant struct {
	name    string
	agent   Agent
	address string
	token   string
	extra   string
}

func variants() []variant {
	plain := Agent{Datacenter: "dc1", RetryJoin: []string{"10.0.0.1", "provider=aws tag_key=consul tag_value=server"}}
	with := func(change func(*Agent)) Agent {
		a := plain
		change(&a)
		return a
	}
	return []variant{
		{"plain", plain, "10.1.2.3", "", ""},
		{"acls", plain, "10.1.2.3", "secret", ""},
		{"auto-encrypt", with(func(a *Agent) { a.CACertPEM, a.AutoEncrypt = certificate, true }), "10.1.2.3", "", ""},
		{"given-ca", with(func(a *Agent) { a.CACertPEM = certificate }), "10.1.2.3", "", ""},
		{"auto-encrypt-without-ca", with(func(a *Agent) { a.AutoEncrypt = true }), "10.1.2.3", "", ""},
		{"gossip", with(func(a *Agent) { a.GossipKey = gossipKey }), "10.1.2.3", "", ""},
		{"partition", with(func(a *Agent) { a.Partition = "team" }), "10.1.2.3", "", ""},
		{"primary", with(func(a *Agent) { a.PrimaryDatacenter, a.TokenReplication = "dc0", true }), "10.1.2.3",
			"secret", ""},
		{"audit", with(func(a *Agent) { a.AuditLogging = true }), "10.1.2.3", "secret", ""},
		{"ipv6", with(func(a *Agent) { a.CACertPEM, a.AutoEncrypt = certificate, true }), "2001:db8::7", "", ""},
		{"template", with(func(a *Agent) { a.CACertPEM, a.AutoEncrypt = certificate, true }),
			`{{ GetAllInterfaces | include "address" "127.0.0.1" | attr "address" }}`, "", ""},
		{"odd-names", with(func(a *Agent) { a.RetryJoin = []string{"quo\"te\n${x}"} }), "10.1.2.3", "secret", ""},
		{"extra", plain, "10.1.2.3", "secret",
			"ports { http = 8599 }\nretry_join = [\"10.0.0.2\"]\nacl { tokens { default = \"x\" } }"},
	}
}

// TestDocuments: each variant as text, and the real Consul's judgement of it.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			text, err := v.agent.document(nodeLocation{v.address, "DIR/data", "DIR/ca.pem"}, v.token)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, v.name+".json", text)

			consul := testkit.RequireBinary(t, "consul")
			dir := t.TempDir()
			files := map[string]string{"agent.json": strings.ReplaceAll(string(text), "DIR", dir), "extra.hcl": v.extra,
				"ca.pem": certificate}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command(consul, "validate", filepath.Join(dir, "agent.json"),
				filepath.Join(dir, "extra.hcl")).CombinedOutput()
			if err != nil {
				t.Fatalf("consul validate: %v\n%s", err, out)
			}
			// Nothing of ours is unknown or deprecated.
			for line := range strings.Lines(string(out)) {
				enterprise := strings.Contains(line, "is a Consul Enterprise configuration")
				known := enterprise && slices.Contains([]string{"partition", "audit"}, v.name)
				if !strings.Contains(line, "Configuration is valid!") && !known {
					t.Errorf("consul validate says: %s", line)
				}
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	task := workload.Task{Containers: []workload.Container{{Networks: []workload.Network{{IPv4Addresses: []string{"10.1.2.3"}}}}}}
	if got, err := (Agent{}).address(task); got != "10.1.2.3" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// Where the metadata has none, the user's choice must do.
	if got, err := (Agent{Address: `{{ GetPrivateIP }}`}).address(workload.Task{}); got != `{{ GetPrivateIP }}` ||
		err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := (Agent{}).address(workload.Task{}); err == nil {
		t.Error("no error for a task without address")
	}
}
