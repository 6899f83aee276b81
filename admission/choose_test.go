package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// admitChoice admits a document of testdata/choices with the mesh file there.
func admitChoice(t *testing.T, name string) *Result {
	t.Helper()
	return admitAll(t, readTestdata(t, "choices", name), parseMesh(t, readTestdata(t, "choices", "mesh")))
}

// configurationOf returns what mesh-init gets.
func configurationOf(t *testing.T, r *Result) *config.Config {
	t.Helper()
	c := r.After.Definition.Container("consul-ecs-mesh-init")
	if c == nil {
		t.Fatalf("no mesh-init, findings %v", r.Findings)
	}
	cfg, _, err := config.Parse([]byte(c.Environment[0].Value))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// messages returns the findings of codes, as "code: message".
func messages(r *Result, codes ...string) []string {
	var found []string
	for _, f := range r.Findings {
		if slices.Contains(codes, f.Code) {
			found = append(found, f.Code+": "+f.Message)
		}
	}
	return found
}

// withContainers returns a task on Fargate of these containers, each with a name, an image and more.
func withContainers(containers ...string) []byte {
	return []byte(`{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512",
		"memory": "1024",
		"containerDefinitions": [` + strings.Join(containers, ", ") + `]}`)
}

func container(name, image, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"name": %q, "image": %q, "entryPoint": ["/app"]%s}`, name, image, more)
}

func TestServicePortIsChosenByEvidence(t *testing.T) {
	t.Parallel()
	const datadog = "public.ecr.aws/datadog/agent:7"
	for name, c := range map[string]struct {
		containers []string
		port       int
		want       string
	}{
		"the only one": {[]string{container("web", "web", `"portMappings": [{"containerPort": 80}]`)}, 80, ""},
		"first of several": {
			[]string{
				container("web", "web", `"portMappings": [{"containerPort": 80}, {"containerPort": 81}]`),
				container("two", "two", `"portMappings": [{"containerPort": 90}]`),
			},
			80,
			"ADM-PORT-CHOICE: the service is registered with port 80 of container web, the first of several: it " +
				"may be 81 of container web, 90 of container two",
		},
		"appProtocol": {
			[]string{
				container("web", "web", `"portMappings": [{"containerPort": 9090}, {"containerPort": 80, `+
					`"appProtocol": "http"}]`),
			},
			80,
			"ADM-PORT-CHOSEN: the service is registered with port 80 of container web, which has an " +
				"appProtocol, and not with 9090 of container web",
		},
		"two of appProtocol": {
			[]string{
				container("web", "web", `"portMappings": [{"containerPort": 80, "appProtocol": "http"}, `+
					`{"containerPort": 81, "appProtocol": "grpc"}]`),
			},
			80,
			"ADM-PORT-CHOICE: the service is registered with port 80 of container web, the first of several: it " +
				"may be 81 of container web",
		},
		"collector first": {
			[]string{
				container("agent", datadog, `"portMappings": [{"containerPort": 8126}]`),
				container("web", "web", `"portMappings": [{"containerPort": 80}]`),
			},
			80,
			"ADM-PORT-CHOSEN: the service is registered with port 80 of container web, and not with 8126 of " +
				"container agent, which is known as a collector",
		},
		"collector with appProtocol": {
			[]string{
				container("agent", datadog, `"portMappings": [{"containerPort": 8126, "appProtocol": "http"}]`),
				container("web", "web", `"portMappings": [{"containerPort": 80}]`),
			},
			80,
			"ADM-PORT-CHOSEN: the service is registered with port 80 of container web, and not with 8126 of " +
				"container agent, which is known as a collector",
		},
		"collector alone": {
			[]string{container("agent", datadog, `"portMappings": [{"containerPort": 8126}]`)}, 8126, "",
		},
		"collector without a port of the application": {
			[]string{
				container("agent", datadog, `"portMappings": [{"containerPort": 8126}]`), container("web", "web", ""),
			},
			0,
			"ADM-SVC-PORT: container web has no TCP port, but 8126 of container agent, which is known as a " +
				"collector, so the service is registered without a port",
		},
		"of the second": {
			[]string{container("web", "web", ""), container("two", "two", `"portMappings": [{"containerPort": 90}]`)},
			90,
			"ADM-PORT-CHOICE: the service is registered with port 90 of container two, as container web, the " +
				"first essential application, has no TCP port",
		},
		"of one that is not essential": {
			[]string{
				container("web", "web", ""),
				container("two", "two", `"essential": false, "portMappings": [{"containerPort": 90}]`),
			},
			0,
			"ADM-SVC-PORT: container web has no TCP port, but 90 of container two, which is not essential, so " +
				"the service is registered without a port",
		},
		"none": {
			[]string{container("web", "web", "")}, 0,
			"ADM-SVC-PORT: container web has no TCP port, so the service is registered without a port",
		},
		"UDP": {
			[]string{container("web", "web", `"portMappings": [{"containerPort": 53, "protocol": "udp"}]`)}, 0,
			"ADM-SVC-PORT: container web has no TCP port but UDP, so the service is registered without a port",
		},
		"range": {
			[]string{container("web", "web", `"portMappings": [{"containerPortRange": "8000-8010"}]`)},
			0,
			"ADM-SVC-PORT: container web has no TCP port but those of a range, so the service is registered " +
				"without a port",
		},
		"annotation": {
			[]string{container("web", "web", `"portMappings": [{"containerPort": 80}, {"containerPort": 81}], `+
				`"dockerLabels": {"consul.hashicorp.com/service-port": "81"}`)},
			81, "",
		},
		"annotation of 0": {
			[]string{container("web", "web", `"dockerLabels": {"consul.hashicorp.com/service-port": "0"}`)}, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, withContainers(c.containers...), parseMesh(t, []byte(plainMesh)))
			if port := configurationOf(t, r).Service.Port; port != c.port {
				t.Errorf("port %d, want %d", port, c.port)
			}
			if got := strings.Join(messages(r, codePortChoice, codePortChosen, codeServicePort), "\n"); got != c.want {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

func TestCollectorIsNotChosenForHealthAndLogs(t *testing.T) {
	t.Parallel()
	const logs = `"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": %q, "awslogs-region": ` +
		`"eu-west-1"}}`
	const health = `"healthCheck": {"command": ["CMD", "/check"]}`
	agent := container("agent", "amazon/aws-xray-daemon", health+", "+fmt.Sprintf(logs, "agent"))
	for name, c := range map[string]struct {
		containers []string
		synced     []string
		group      string
	}{
		"both": {
			[]string{agent, container("web", "web", health+", "+fmt.Sprintf(logs, "web"))}, []string{"web"}, "web",
		},
		"logs of the agent alone": {[]string{agent, container("web", "web", health)}, []string{"web"}, "agent"},
		"health of the agent":     {[]string{agent, container("web", "web", fmt.Sprintf(logs, "web"))}, nil, "web"},
		"agent alone":             {[]string{agent}, []string{"agent"}, "agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, withContainers(c.containers...), parseMesh(t, []byte(plainMesh)))
			if got := configurationOf(t, r).HealthSyncContainers; !slices.Equal(got, c.synced) {
				t.Errorf("health of %v, want %v", got, c.synced)
			}
			if got := r.After.Definition.Container(
				"consul-ecs-mesh-init").LogConfiguration.Options["awslogs-group"]; got != c.group {
				t.Errorf("logs as %s, want %s", got, c.group)
			}
			if got := messages(r, codeLogs); len(got) != 1 {
				t.Errorf("findings about the logs %q", got)
			}
		})
	}
}

func TestChoicesOfHealthAreReported(t *testing.T) {
	t.Parallel()
	const health = `"healthCheck": {"command": ["CMD", "/check"]}`
	for name, c := range map[string]struct {
		containers []string
		want       []string
	}{
		"one": {[]string{container("web", "web", health)}, nil},
		"two": {
			[]string{container("web", "web", health), container("two", "two", health)},
			[]string{"ADM-HEALTH-FROM: the service is healthy while each of the containers two, web is"},
		},
		"collector": {
			[]string{container("web", "web", health), container("agent", "fluent/fluent-bit", health)},
			[]string{"ADM-HEALTH-FROM: the service does not have the health of agent, a known collector"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, withContainers(c.containers...), parseMesh(t, []byte(plainMesh)))
			if got := messages(r, codeHealthFrom); !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// Docker counts failures from the end of the start period on, while a wrapped application waits.
func TestShortStartPeriodIsReported(t *testing.T) {
	t.Parallel()
	const short = `"healthCheck": {"command": ["CMD", "/check"], "startPeriod": %d}`
	for name, c := range map[string]struct {
		container string
		reported  bool
	}{
		"none":          {container("web", "web", `"healthCheck": {"command": ["CMD", "/check"]}`), false},
		"short":         {container("web", "web", fmt.Sprintf(short, 59)), true},
		"long enough":   {container("web", "web", fmt.Sprintf(short, 60)), false},
		"not wrapped":   {`{"name": "web", "image": "web", ` + fmt.Sprintf(short, 0) + `}`, false},
		"switched off":  {container("web", "web", `"healthCheck": {"command": ["NONE"], "startPeriod": 0}`), false},
		"not essential": {container("web", "web", fmt.Sprintf(short, 0)+`, "essential": false`), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, withContainers(container("first", "first", ""), c.container),
				parseMesh(t, []byte(plainMesh)))
			if got := messages(r, codeHealthStart); len(got) > 0 != c.reported {
				t.Errorf("findings %q, reported %v", got, c.reported)
			}
		})
	}
}

func TestPortsOutsideOfTheMeshAreReportedAndExcluded(t *testing.T) {
	t.Parallel()
	const doc = `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["EC2"],
		"containerDefinitions": [
		{"name": "web", "image": "web", "memory": 64, "entryPoint": ["/web"], "portMappings": [{"containerPort": 80, "appProtocol": "http"}, {"containerPort": 9090},
			{"containerPort": 53, "protocol": "udp"}, {"containerPortRange": "7000-7002"}]},
		{"name": "agent", "image": "datadog/agent", "memory": 64, "entryPoint": ["/agent"], "portMappings": [{"containerPort": 8126}]}]}`
	const direct = "callers reach them without its encryption and its intentions"
	mesh := func(redirection string) string {
		return `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}` + redirection + `}`
	}
	for name, c := range map[string]struct {
		mesh string
		want []string
		port []int
	}{
		"transparent": {mesh(""), []string{
			"ADM-PORT-PLAIN: the mesh does not carry the ports 9090, 53/udp, 7000-7002 of container web: " + direct,
			"ADM-PORT-PLAIN: the mesh does not carry the ports 8126 of container agent: " + direct,
		}, []int{7000, 7001, 7002, 8126, 9090}},
		"off": {mesh(`, "transparentProxy": {"enabled": false}`), []string{
			"ADM-PORT-PLAIN: the mesh does not carry the ports 9090, 53/udp, 7000-7002 of container web: " + direct,
			"ADM-PORT-PLAIN: the mesh does not carry the ports 8126 of container agent: " + direct,
		}, nil},
		"ports of the mesh file": {mesh(`, "transparentProxy": {"excludeInboundPorts": [9090, 8126]}`), []string{
			"ADM-PORT-PLAIN: the mesh does not carry the ports 7000-7002 of container web: the transparent proxy " +
				"takes their connections, and has no listener for them; " +
				"transparentProxy.excludeInboundPorts of the mesh file lets them through",
			"ADM-PORT-PLAIN: the mesh does not carry the ports 9090, 53/udp of container web: " + direct,
			"ADM-PORT-PLAIN: the mesh does not carry the ports 8126 of container agent: " + direct,
		}, []int{8126, 9090}},
		"none of the mesh file": {mesh(`, "transparentProxy": {"excludeInboundPorts": []}`), []string{
			"ADM-PORT-PLAIN: the mesh does not carry the ports 53/udp of container web: " + direct,
			"ADM-PORT-PLAIN: the mesh does not carry the ports 9090, 7000-7002 of container web: the transparent " +
				"proxy takes their connections, and has no listener for them; " +
				"transparentProxy.excludeInboundPorts of the mesh file lets them through",
			"ADM-PORT-PLAIN: the mesh does not carry the ports 8126 of container agent: the transparent proxy takes " +
				"their connections, and has no listener for them; " +
				"transparentProxy.excludeInboundPorts of the mesh file lets them through",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, []byte(doc), parseMesh(t, []byte(c.mesh)))
			got := configurationOf(t, r).TransparentProxy.ExcludeInboundPorts
			slices.Sort(got)
			if !slices.Equal(got, c.port) {
				t.Errorf("excluded %v, want %v", got, c.port)
			}
			if got := messages(r, codePortPlain); !slices.Equal(got, c.want) {
				t.Errorf("findings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A range of thousands of ports would be as many rules in each task.
func TestLargeRangeIsNotExcluded(t *testing.T) {
	t.Parallel()
	def := &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{{Name: "web",
		PortMappings: []taskdef.PortMapping{{ContainerPortRange: "1000-2000"}}}}}
	if got := plainPorts(def, 80); len(got) != 0 {
		t.Errorf("%d ports", len(got))
	}
}

func TestHealthCheckThatIsComputedIsReported(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]string{
		"check":   `{"Fn::If": ["C", {"Command": ["CMD", "/check"]}, {"Ref": "AWS::NoValue"}]}`,
		"command": `{"Command": {"Fn::If": ["C", ["CMD", "/check"], ["NONE"]]}}`,
	} {
		r := admitAll(t, template("", `"HealthCheck": `+check), parseMesh(t, []byte(plainMesh)))
		want := "ADM-COMPUTED: the health check of this container is known at deployment only: its result is not " +
			"sent to Consul"
		if got := messages(r, codeComputed); !slices.Contains(got, want) {
			t.Errorf("%s: findings %q, want %q", name, got, want)
		}
	}
	r := admitAll(t, template("", `"HealthCheck": {"Ref": "AWS::NoValue"}`), parseMesh(t, []byte(plainMesh)))
	if got := messages(r, codeComputed); len(got) != 1 {
		t.Errorf("no health check: findings %q", got)
	}
}

// The choices of definitions as users have them.
func TestChoicesAreReported(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sidecar-first":                     "info ADM-PORT-CHOSEN",
		"no-requires-compatibilities":       "info ADM-LAUNCH",
		"requires-compatibilities-ref.yaml": "info ADM-LAUNCH",
		"startperiod-0":                     "warning ADM-HEALTH-START",
		"udp-only":                          "warning ADM-SVC-PORT",
		"no-task-role":                      "error ADM-IAM-ROLE",
		"describe-without-include-tags":     "error ADM-TAGS-LOST",
		"port-range-only":                   "warning ADM-SVC-PORT",
	} {
		found := func(f Finding) bool { return strings.HasPrefix(f.String(), want+" ") }
		if r := admitChoice(t, name); !slices.ContainsFunc(r.Findings, found) {
			t.Errorf("%s: findings %v, want %s", name, r.Findings, want)
		}
	}
}

// What the project shows as ordinary definitions has no warning.
func TestExamplesHaveNoWarnings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/admit/*.json")
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := os.ReadFile("../examples/admit/mesh.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "api"} {
		doc, err := os.ReadFile(filepath.Join("../examples/admit", name+".json"))
		if err != nil {
			t.Fatalf("%v of %v", err, files)
		}
		if r := admitAll(t, doc, parseMesh(t, mesh)); r.Rejected(true) {
			t.Errorf("%s: findings %v", name, r.Findings)
		}
	}
}
