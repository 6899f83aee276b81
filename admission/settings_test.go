package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// sidecarsMesh returns a mesh file with settings of containers.
func sidecarsMesh(members string) string {
	return `{"consulServers": {"hosts": "10.0.0.4"}, "transparentProxy": {"enabled": false},
		"proxy": {"mode": "direct"},
		"admission": {"sidecars": {` + members + `}}}`
}

// sidecarOf returns the container of a role.
func sidecarOf(t *testing.T, r *Result, role string) taskdef.Container {
	t.Helper()
	for _, c := range r.After.Definition.ContainerDefinitions {
		if roleOf(c.Name) == role {
			return c
		}
	}
	t.Fatalf("no container %s", role)
	return taskdef.Container{}
}

func TestContainersOfTheMeshAreHardened(t *testing.T) {
	t.Parallel()
	const ec2 = `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["EC2"],
		"containerDefinitions": [{"name": "app", "image": "app", "memory": 64, "entryPoint": ["/app"]}]}`
	for _, tt := range []struct {
		name, mesh, role, user string
		readOnly               bool
		add, drop              string
	}{
		{"mesh-init", sidecarsMesh(""), roleMeshInit, "5996:5996", true, "", "ALL"},
		{"proxy", sidecarsMesh(""), roleProxy, "5995:5996", true, "", "ALL"},
		{"health-sync", sidecarsMesh(""), roleHealthSync, "5996:5996", true, "", "ALL"},
		{"install", `{"consulLogin": {"enabled": true}}`, roleInstall, "5996:5996", true, "", "ALL"},
		{"agent", `{"consulLogin": {"enabled": true}}`, roleClient, "5996:5996", true, "", "ALL"},
		{
			"transparent proxy", `{"consulServers": {"hosts": "a"}, "transparentProxy": {"enabled": true}}`,
			roleMeshInit, "0", false, "NET_ADMIN CHOWN DAC_OVERRIDE", "ALL",
		},
		{
			"its proxy", `{"consulServers": {"hosts": "a"}, "transparentProxy": {"enabled": true}}`, roleProxy,
			"5995:5996", true, "", "ALL",
		},
		{
			"names of upstreams",
			`{"proxy": {"namedUpstreams": true}, "transparentProxy": {"enabled": false}, "consulServers": ` +
				`{"hosts": "a"}}`,
			roleMeshInit, "5996:5996", false, "", "ALL",
		},
		{
			"settings",
			sidecarsMesh(`"all": {"readonlyRootFilesystem": false, "user": "7"}, "proxy": {"user": "8", ` +
				`"dropCapabilities": [], "addCapabilities": ["SYS_PTRACE"]}`),
			roleProxy, "8", false, "SYS_PTRACE", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := sidecarOf(t, admit(t, []byte(ec2), parseMesh(t, []byte(tt.mesh))), tt.role)
			if c.User != tt.user {
				t.Errorf("user %q, want %q", c.User, tt.user)
			}
			if got := taskdef.Or(c.ReadonlyRootFilesystem, false); got != tt.readOnly {
				t.Errorf("readonlyRootFilesystem %v, want %v", got, tt.readOnly)
			}
			capabilities := c.LinuxParameters.Capabilities
			if got := strings.Join(capabilities.Add, " "); got != tt.add {
				t.Errorf("capabilities %q are added, want %q", got, tt.add)
			}
			if got := strings.Join(capabilities.Drop, " "); got != tt.drop {
				t.Errorf("capabilities %q are dropped, want %q", got, tt.drop)
			}
		})
	}
}

// All other settings are compared with what the Terraform modules make of them, see
// terraform/internal/parity.
func TestSettingsOfARoleAreOverThoseOfAll(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(sidecarsMesh(`"all": {"cpu": 16, "memory": 64, "environment": [{"name": "A", "value": "1"}], "dockerLabels": {"team": "shop", "consul.hashicorp.com/injected-by": "x"}},
		"healthSync": {"cpu": 32, "stopTimeout": 100, "environment": [{"name": "B", "value": "2"}]}`)))
	c := sidecarOf(t, admit(t, definition("", plainApp), mesh), roleHealthSync)
	if *c.CPU != 32 {
		t.Errorf("cpu %d, want 32", *c.CPU)
	}
	if *c.Memory != 64 {
		t.Errorf("memory %d, want that of all, 64", *c.Memory)
	}
	if *c.StopTimeout != 100 {
		t.Errorf("stopTimeout %d, want 100", *c.StopTimeout)
	}
	if got := strings.Join(c.Command, " "); got != "health-sync -stop-timeout 100s" {
		t.Errorf("command %q has not the stop timeout of the container", got)
	}
	var names []string
	for _, e := range c.Environment[1:] {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"A", "B"}) {
		t.Errorf("variables %q, want those of all and of the role", names)
	}
	if c.DockerLabels["team"] != "shop" {
		t.Errorf("labels %v, want that of all among them", c.DockerLabels)
	}
	if c.DockerLabels[annotationInjectedBy] != "consul-ecs" {
		t.Errorf("labels %v, want the program's own unchanged", c.DockerLabels)
	}
}

func TestAnnotationsAreOverTheSettingsOfTheProxy(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(sidecarsMesh(`"proxy": {"cpu": 128, "memory": 256, "memoryReservation": 64}`)))
	doc := definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/sidecar-memory": "300"}`)
	c := sidecarOf(t, admit(t, doc, mesh), roleProxy)
	if *c.CPU != 128 {
		t.Errorf("cpu %d, want 128", *c.CPU)
	}
	if *c.Memory != 300 {
		t.Errorf("memory %d, want that of the annotation, 300", *c.Memory)
	}
	if c.MemoryReservation != nil {
		t.Errorf("memoryReservation %d, want none", *c.MemoryReservation)
	}
}

func TestSettingsThatNoTaskCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	for sidecars, want := range map[string]string{
		`"sidecars": {"sidecar-proxy": {"cpu": 1}}`: "admission.sidecars.sidecar-proxy of the mesh file: no such " +
			"role, want one of all, install, client, meshInit, proxy, healthSync",
		`"sidecars": {"proxy": {"memory": -5}}`:         "admission.sidecars.proxy of the mesh file: has -5, want 0 or more",
		`"sidecars": {"meshInit": {"essential": true}}`: "cannot be essential",
		`"sidecars": {"all": {"essential": true}}`:      "cannot be essential",
		`"sidecars": {"client": {"healthCheck": {}}}`:   "only the proxy has a health check",
		`"sidecars": {"proxy": {"cpus": 1}}`:            `unknown field "cpus"`,
		`"resources": {"sidecar-proxy": {"cpu": 1}}`:    "use sidecars, by role",
		`"sidecars": {"proxy": {"environment": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}}`: "admission.sidecars.proxy.environment " +
			"of the mesh file: A is given twice, in it or also in all: remove it",
		`"sidecars": {"all": {"environment": [{"name": "A"}]}, "proxy": {"environment": [{"name": "A"}]}}`: "sidecars.proxy.environment " +
			"of the mesh file: A is given twice",
		`"sidecars": {"all": {"environment": [{"name": "A"}, {"name": "A"}]}}`: "sidecars.all.environment of the " +
			"mesh file: A is given twice",
		`"sidecars": {"meshInit": {"environment": [{"name": "CONSUL_ECS_CONFIG_JSON"}]}}`: "CONSUL_ECS_CONFIG_JSON " +
			"is set by admission: remove it",
		`"sidecars": {"client": {"environment": [{"name": "CONSUL_AGENT_CONFIGURATION"}]}}`: "CONSUL_AGENT_CONFIGURATION is set by admission",
	} {
		_, err := ParseMesh([]byte(`{"admission": {` + sidecars + `}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", sidecars, err, want)
		}
	}
}

func TestLogsOfTheMeshAreNotJoinedAsThoseOfAnApplication(t *testing.T) {
	t.Parallel()
	r := admit(t, definition("", plainApp+`, "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/a", "awslogs-region": "us-east-1",
		"awslogs-stream-prefix": "a", "awslogs-multiline-pattern": "^x", "awslogs-datetime-format": "%Y"}}`),
		parseMesh(t, []byte(plainMesh)))
	if got := sidecarOf(t, r, roleProxy).LogConfiguration.Options; len(got) != 3 {
		t.Errorf("options %v, want the first three of the application", got)
	}
	if got := r.After.Definition.ContainerDefinitions[0].LogConfiguration.Options; len(got) != 5 {
		t.Errorf("options of the application %v, want all five", got)
	}
}

// codesAt returns the codes of a definition's findings at a member of the proxy, or of the task.
func codesAt(t *testing.T, mesh, app, member string) []string {
	t.Helper()
	var codes []string
	for _, f := range admit(t, definition(`"volumes": [{"name": "data"}],`, app), parseMesh(t, []byte(mesh))).Findings {
		if strings.HasSuffix(f.Path, member) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

func TestSettingsAreCheckedAsContainersOfTheUserAre(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sidecars, app, member, want string }{
		{
			"mount over the shared volume",
			`"proxy": {"mountPoints": [{"sourceVolume": "data", "containerPath": "/consul"}]}`, plainApp,
			".mountPoints[1]", "ADM-MOUNT ADM-VOLUME",
		},
		{
			"mount elsewhere", `"proxy": {"mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}]}`,
			plainApp, ".mountPoints[1]", "",
		},
		{"image of another architecture", `"proxy": {"image": "envoy:1-arm64"}`, plainApp, ".image", "ADM-ARCH"},
		{
			"logs that block",
			`"proxy": {"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/a", ` +
				`"awslogs-region": "us-east-1", "awslogs-stream-prefix": "a", "mode": "blocking"}}}`,
			plainApp, ".mode", "ADM-LOG-BLOCK",
		},
		{
			"logs that do not",
			`"proxy": {"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/a", ` +
				`"awslogs-region": "us-east-1", "awslogs-stream-prefix": "a", "mode": "non-blocking"}}}`,
			plainApp, ".mode", "",
		},
		{
			"logs of health-sync",
			`"healthSync": {"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/a", ` +
				`"awslogs-region": "us-east-1", "awslogs-stream-prefix": "a", "mode": "blocking"}}}`,
			plainApp, ".mode", "",
		},
		{"no CPU for the proxy", ``, plainApp + `, "cpu": 500`, "$.cpu", "ADM-CPU"},
		{"CPU for the proxy", `"proxy": {"cpu": 12}`, plainApp + `, "cpu": 500`, "$.cpu", ""},
		{"CPU that is left", ``, plainApp + `, "cpu": 480`, "$.cpu", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(codesAt(t, sidecarsMesh(tt.sidecars), tt.app, tt.member), " "); got != tt.want {
				t.Errorf("codes %q, want %q", got, tt.want)
			}
		})
	}
}

// Mesh-init writes files of its container's network for the names of upstreams and for Consul DNS.
func TestMeshInitThatWritesFilesIsNotReadOnly(t *testing.T) {
	t.Parallel()
	const mesh = `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct", "namedUpstreams": %t},
		"transparentProxy": {"enabled": %t, "consulDNS": {"enabled": %t}},
		"admission": {"sidecars": {"all": {"readonlyRootFilesystem": true}%s}}}`
	const cure = `, "meshInit": {"readonlyRootFilesystem": false}`
	for _, tt := range []struct {
		named, transparent, dns bool
		cure, want              string
	}{
		{named: true, want: codeConfig},
		{named: true, cure: cure},
		{transparent: true, dns: true, want: codeConfig},
		{transparent: true, dns: true, cure: cure},
		{transparent: true},
		{},
	} {
		got := strings.Join(codesAt(t, fmt.Sprintf(mesh, tt.named, tt.transparent, tt.dns, tt.cure), plainApp,
			".readonlyRootFilesystem"), " ")
		if got != tt.want {
			t.Errorf("%+v: codes %q, want %q", tt, got, tt.want)
		}
	}
}

// A container that has done its work is not restarted, whatever the policy of all is.
func TestRestartPolicyOfContainersThatExit(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct{ meshInit, healthSync string }{
		`{}`:                           {"[0]", "[]"},
		`{"ignoredExitCodes": [3]}`:    {"[0 3]", "[3]"},
		`{"ignoredExitCodes": [3, 0]}`: {"[3 0]", "[3 0]"},
	} {
		mesh := parseMesh(t, []byte(sidecarsMesh(`"all": {"restartPolicy": `+policy+`}`)))
		r := admit(t, definition("", `"entryPoint": ["/app"]`), mesh)
		ignored := func(role string) string { return fmt.Sprint(sidecarOf(t, r, role).RestartPolicy.IgnoredExitCodes) }
		if got := ignored(roleMeshInit); got != want.meshInit {
			t.Errorf("%s: mesh-init ignores %s, want %s", policy, got, want.meshInit)
		}
		if got := ignored(roleHealthSync); got != want.healthSync {
			t.Errorf("%s: health-sync ignores %s, want %s", policy, got, want.healthSync)
		}
	}
}

// The shared volume belongs to the user of our image, which a container of another one has to be root or
// in the group to use.
func TestUsersThatCannotUseTheSharedVolumeAreReported(t *testing.T) {
	t.Parallel()
	const agent = `{"consulLogin": {"enabled": true}, %s"admission": {"client": {"retryJoin": ["10.0.0.4"]},
		"sidecars": {%s}}}`
	const agentless = `{"consulServers": {"hosts": "a"}, "proxy": {"mode": "direct"},
		"transparentProxy": {"enabled": false}, %s"admission": {"sidecars": {%s}}}`
	const elsewhere = `"bootstrapDir": "/mesh", `
	for name, c := range map[string]struct{ file, members, sidecars, want string }{
		"none":        {agentless, "", "", ""},
		"the user":    {agentless, "", `"all": {"user": "5996"}`, ""},
		"its name":    {agentless, "", `"meshInit": {"user": "consul-ecs"}`, ""},
		"another one": {agentless, "", `"meshInit": {"user": "1000:5996"}`, "consul-ecs-mesh-init write"},
		"of all": {
			agentless, "", `"all": {"user": "1000"}`,
			"consul-ecs-mesh-init write, sidecar-proxy read, consul-ecs-health-sync write",
		},
		"in the group":       {agentless, "", `"proxy": {"user": "101:5996"}`, ""},
		"health-sync writes": {agentless, "", `"healthSync": {"user": "1000:5996"}`, "consul-ecs-health-sync write"},
		"health-sync reads":  {agent, "", `"healthSync": {"user": "1000:5996"}`, ""},
		"agent": {
			agent, "", `"client": {"user": "100"}, "install": {"user": "100"}`,
			"consul-ecs-install write, consul-client write",
		},
		"root": {agentless, "", `"meshInit": {"user": "0", "dropCapabilities": []}`, ""},
		"root that overrides": {
			agentless, "", `"meshInit": {"user": "root", "addCapabilities": ["DAC_OVERRIDE"]}`, "",
		},
		"root that must not":   {agentless, "", `"meshInit": {"user": "0:0"}`, "consul-ecs-mesh-init write"},
		"other directory":      {agentless, elsewhere, "", "consul-ecs-mesh-init write"},
		"its owner":            {agentless, elsewhere, `"meshInit": {"user": "1000"}`, ""},
		"owner with an agent":  {agent, elsewhere, `"meshInit": {"user": "1000"}`, "consul-ecs-install write"},
		"owner of the install": {agent, elsewhere, `"install": {"user": "1000"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := parseMesh(t, fmt.Appendf(nil, c.file, c.members, c.sidecars))
			var found []string
			for _, f := range admitAll(t, definition("", plainApp+`, "healthCheck": {"command": ["CMD", "/app"]}`),
				mesh).Findings {
				if f.Code == codeVolumeOwner {
					words := strings.Fields(f.Message)
					found = append(found, words[1]+" "+words[8])
				}
			}
			if got := strings.Join(found, ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
