package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTransparentProxyNeedsEvidenceOfEC2(t *testing.T) {
	t.Parallel()
	const off, on = `, "transparentProxy": {"enabled": false}`, `, "transparentProxy": {"enabled": true}`
	for name, c := range map[string]struct {
		types, mesh string
		enabled     bool
		want        []string
	}{
		"EC2": {
			`"requiresCompatibilities": ["EC2"],`, "", true,
			[]string{"ADM-LAUNCH: the transparent proxy is on, because requiresCompatibilities is EC2"},
		},
		"Fargate": {`"requiresCompatibilities": ["FARGATE"],`, "", false, nil},
		"absent": {
			"", "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is absent"},
		},
		"empty": {
			`"requiresCompatibilities": [],`, "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is absent"},
		},
		"both": {
			`"requiresCompatibilities": ["EC2", "FARGATE"],`, "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is EC2 and FARGATE"},
		},
		"Managed Instances": {
			`"requiresCompatibilities": ["MANAGED_INSTANCES"],`, "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is MANAGED_INSTANCES"},
		},
		"absent, off": {"", off, false, nil},
		"absent, on": {
			"", on, true,
			[]string{"ADM-TPROXY-LAUNCH: the transparent proxy is on, and requiresCompatibilities is absent: Fargate " +
				"refuses the definition, as it does not give NET_ADMIN"},
		},
		"absent, settings alone": {
			"", `, "transparentProxy": {"excludeUIDs": ["7"]}`, false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is absent"},
		},
		"Managed Instances, on": {`"requiresCompatibilities": ["MANAGED_INSTANCES"],`, on, true, nil},
		"EC2, off":              {`"requiresCompatibilities": ["EC2"],`, off, false, nil},
		"described, of an old time": {
			`"compatibilities": ["EC2", "FARGATE"],`, "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is absent"},
		},
		"Fargate, off by the mesh": {`"requiresCompatibilities": ["FARGATE"],`, off, false, nil},
		"EC2 and Managed Instances": {
			`"requiresCompatibilities": ["EC2", "MANAGED_INSTANCES"],`, "", false,
			[]string{"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is EC2 and " +
				"MANAGED_INSTANCES"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := fmt.Appendf(nil, `{"family": "app", "networkMode": "awsvpc", "cpu": "512", "memory": "1024", %s
				"containerDefinitions": [{"name": "app", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]}`, c.types)
			r := admitAll(t, doc, parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}`+c.mesh+`}`)))
			if got := configurationOf(t, r).TransparentProxy.Enabled; got != c.enabled {
				t.Errorf("transparent proxy %v, want %v", got, c.enabled)
			}
			if got := strings.Contains(string(r.After.Bytes()), "NET_ADMIN"); got != c.enabled {
				t.Errorf("NET_ADMIN %v, want %v", got, c.enabled)
			}
			if got := messages(r, codeLaunch, codeTProxyOn, codeTProxy); !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// A list of containers shows the launch type of no task: the mesh file has to.
func TestTransparentProxyOfAListIsTheMeshFiles(t *testing.T) {
	t.Parallel()
	const doc = `[{"name": "app", "image": "app", "memory": 64, "entryPoint": ["/app"],
		"portMappings": [{"containerPort": 80}]}]`
	for mesh, want := range map[string][]string{
		`{"consulServers": {"hosts": "10.0.0.4"}}`: {
			"ADM-LAUNCH: the transparent proxy is off, because requiresCompatibilities is not in a list of containers",
		},
		`{"consulServers": {"hosts": "10.0.0.4"}, "transparentProxy": {"enabled": true}}`: nil,
	} {
		r := admitAll(t, []byte(doc), parseMesh(t, []byte(mesh)))
		if got := messages(r, codeLaunch, codeTProxyOn); !slices.Equal(got, want) {
			t.Errorf("%s: findings %q, want %q", mesh, got, want)
		}
	}
}

// What runs on EC2 alone would keep a definition from Fargate.
func TestDefinitionOfAnUnknownLaunchTypeStaysOneForFargate(t *testing.T) {
	t.Parallel()
	const doc = `{"family": "app", "networkMode": "awsvpc", "cpu": "512", "memory": "1024",
		"runtimePlatform": {"cpuArchitecture": "ARM64"}, %s
		"containerDefinitions": [{"name": "app", "image": "app", "stopTimeout": %d, "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]}`
	for name, c := range map[string]struct {
		types                   string
		stop, want, constraints int
	}{
		"absent":             {"", 110, 120, 0},
		"absent, impossible": {"", 200, 215, 0},
		"EC2":                {`"requiresCompatibilities": ["EC2"],`, 110, 125, 1},
		"Fargate":            {`"requiresCompatibilities": ["FARGATE"],`, 110, 120, 0},
	} {
		r := admitAll(t, fmt.Appendf(nil, doc, c.types, c.stop), parseMesh(t, []byte(plainMesh)))
		if got := *r.After.Definition.Container("sidecar-proxy").StopTimeout; got != c.want {
			t.Errorf("%s: stop timeout %d, want %d", name, got, c.want)
		}
		if got := len(r.After.Definition.PlacementConstraints); got != c.constraints {
			t.Errorf("%s: %d constraints, want %d", name, got, c.constraints)
		}
	}
}

// mesh-init refuses the others: they have no address of their own.
func TestHostModeIsForGatewaysWithAnAgent(t *testing.T) {
	t.Parallel()
	const doc = `{"family": "gw", "networkMode": "%s", "requiresCompatibilities": ["EC2"],
		"containerDefinitions": [{"name": "a", "image": "a", "memory": 64, "entryPoint": ["/a"]}]}`
	const gateway, agent = `"gateway": {"kind": "mesh-gateway"}`,
		`, "admission": {"client": {"retryJoin": ["10.0.0.4"]}}`
	for mesh, want := range map[string]map[string]bool{
		`{` + gateway + agent + `}`: {"host": false, "bridge": true, "awsvpc": false},
		`{` + gateway + `, "consulServers": {"hosts": "a"}, "transparentProxy": {"enabled": false}}`: {
			"host": true, "bridge": true, "awsvpc": false,
		},
		`{"service": {"port": 0}` + agent + `}`: {
			"host": true, "bridge": true, "awsvpc": false,
		},
	} {
		for mode, refused := range want {
			r := admitAll(t, fmt.Appendf(nil, doc, mode), parseMesh(t, []byte(mesh)))
			if got := len(messages(r, codeNetMode)) > 0; got != refused {
				t.Errorf("%s with %s: refused %t, want %t", mode, mesh, got, refused)
			}
		}
	}
}
