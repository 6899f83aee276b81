package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// probe is an import together with the calls that our commands make of it:
// the linker leaves out what is not called.
type probe struct {
	what    string
	imports []string
	calls   string
	comment string
}

// probes returns the imports of the in-task commands that are worth watching. The first is what the others are added
// to.
func probes() []probe {
	return []probe{
		{what: "(that program)"},
		{"go-hclog", []string{"github.com/hashicorp/go-hclog"},
			`hclog.New(&hclog.LoggerOptions{JSONFormat: true}).Info("message", "key", v)`, ""},
		{"mitchellh/cli", []string{"github.com/mitchellh/cli"},
			`print(cli.BasicHelpFunc("x")(map[string]cli.CommandFactory{}))`, "the list of commands only"},
		{"config", []string{"github.com/meshtask/consul-ecs/config"},
			`c, w, err := config.Parse([]byte("{}")); print(c, w, err)`, "our schema and its validator"},
		{"consul/api", []string{"github.com/hashicorp/consul/api"}, `
			c, _ := api.NewClient(api.DefaultConfig())
			c.Agent().ServiceRegister(&api.AgentServiceRegistration{})
			c.Agent().CheckRegister(&api.AgentCheckRegistration{})
			c.Agent().UpdateTTL("", "", "")
			c.Agent().Self()
			c.ACL().Login(&api.ACLLoginParams{}, nil)
			c.ACL().Logout(nil)`, ""},
		{"aws signer", []string{
			"context", "time", "github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/signer/v4",
		},
			`v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{}, nil, "", "", "", time.Time{})`, ""},
		{"aws config", []string{"context", "github.com/aws/aws-sdk-go-v2/config"}, `
			c, _ := config.LoadDefaultConfig(context.Background())
			c.Credentials.Retrieve(context.Background())`, "the default chain: files, SSO, STS, container, EC2"},
		{"awsutil", []string{"context", "github.com/meshtask/consul-ecs/awsutil"}, `
			c, _ := awsutil.LoadConfig(context.Background(), awsutil.LoadOptions{})
			c.Credentials.Retrieve(context.Background())
			e := awsutil.NewECSReader(c, awsutil.ECSReaderOptions{})
			e.List(context.Background(), "", "", nil)
			e.Describe(context.Background(), "", nil)`, "aws config included: acl-controller and gc look at ECS by it"},
		{"HTTP server", []string{"github.com/meshtask/consul-ecs/internal/metrics"},
			`http.ListenAndServe("", &metrics.Set{})`, "metrics included, see docs/ARCHITECTURE.md"},
		{"the entrypoints", []string{
			"context", "github.com/meshtask/consul-ecs/awsutil", "github.com/meshtask/consul-ecs/entrypoint",
			"github.com/meshtask/consul-ecs/envoy",
			"github.com/meshtask/consul-ecs/internal/cli", "github.com/meshtask/consul-ecs/supervise",
		}, `
			child, _ := supervise.Start(nil, nil)
			entrypoint.RunApp(context.Background(), entrypoint.App{Child: child})
			metadata := awsutil.NewMetadataClient("")
			entrypoint.RunEnvoy(context.Background(), entrypoint.Envoy{Child: child, Metadata: metadata})
			entrypoint.Drainer(envoy.Proxy{})
			cli.Main(cli.App{}, nil, nil, nil, nil, nil)`,
			"hclog and cli included: a second program of these only would be this and the first row"},
	}
}

func (p probe) source() string {
	var b strings.Builder
	b.WriteString("package main\nimport (\n")
	for _, i := range append([]string{"encoding/json", "flag", "net/http"}, p.imports...) {
		fmt.Fprintf(&b, "%q\n", i)
	}
	b.WriteString(")\nfunc main() {\nflag.Parse()\nvar v any\nr, err := http.Get(flag.Arg(0))\n")
	b.WriteString("if err != nil { panic(err) }\njson.NewDecoder(r.Body).Decode(&v)\n")
	b.WriteString(p.calls + "\n}\n")
	return b.String()
}

// importRows builds a program per probe, and consul-ecs with a call of
// text/template, whose calls of methods by name forbid the linker to leave out
// any exported method.
func importRows(ctx context.Context, dir string, ours float64) ([]row, error) {
	var rows []row
	for i, p := range probes() {
		size, err := buildSource(ctx, dir, fmt.Sprintf("internal/size/probe%d/main.go", i), p.source())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.what, err)
		}
		if i > 0 {
			size -= rows[0].mb
		}
		rows = append(rows, row{p.what, size, p.comment})
	}
	const methods = "package main\nimport (\n\"os\"\n\"text/template\"\n)\n" +
		"func init() {\nif len(os.Args) > 1<<20 {\ntemplate.New(\"\").Execute(os.Stdout, nil)\n}\n}\n"
	size, err := buildSource(ctx, dir, "cmd/consul-ecs/zz_template.go", methods)
	if err != nil {
		return nil, err
	}
	return append(rows, row{"text/template", size - ours, "in consul-ecs itself; not in it, and best kept out"}), nil
}

// buildSource builds the package of a file that is not there.
func buildSource(ctx context.Context, dir, file, source string) (float64, error) {
	real := filepath.Join(dir, "source.go")
	if err := os.WriteFile(real, []byte(source), 0o600); err != nil {
		return 0, err
	}
	return build(ctx, filepath.Join(dir, "probe"), "./"+filepath.Dir(file),
		map[string]string{filepath.Join(testkit.Root(), file): real})
}

// build makes a static, stripped program of a package and returns its size in
// MB. The overlay names files to read in place of others.
func build(ctx context.Context, out, pkg string, overlay map[string]string) (float64, error) {
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return 0, err
	}
	file := out + ".overlay.json"
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", file, "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Dir = testkit.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build %s: %w: %s", pkg, err, text)
	}
	st, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return float64(st.Size()) / 1e6, nil
}
