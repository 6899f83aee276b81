package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// TestRenderRefusesWhatAdmitRefuses renders a task for each error of admit about what the user of the modules sets,
// except for flags in a container's own line (ADM-FLAG).
func TestRenderRefusesWhatAdmitRefuses(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/render", stub.AWS6)
	const upstreams = `"proxy": {"mode": "direct", "upstreams": [{"destinationName": %q, "localBindPort": %d}, ` +
		`{"destinationName": "db", "localBindPort": 9192}]}`
	var meta strings.Builder
	for i := range 62 {
		fmt.Fprintf(&meta, `"k%d": "1",`, i)
	}
	for _, tt := range []struct{ name, members, mesh, code, want string }{
		{
			"port of the public listener", `"portMappings": [{"containerPort": 20000}]`, "", "ADM-PORT",
			"Port 20000 of container web is also that of Envoy's public listener",
		},
		{
			"port of Envoy's administration", `"portMappings": [{"containerPort": 19000}]`, "", "ADM-PORT",
			"Port 19000 of container web is also that of Envoy's admin interface",
		},
		{"port of an upstream", `"portMappings": [{"containerPort": 9191}]`, fmt.Sprintf(upstreams, "api",
			9191), "ADM-PORT", "Port 9191 of container web is also that of the upstream api"},
		{
			"upstream at the readiness port", `"cpu": 1`, fmt.Sprintf(upstreams, "api", 22000), "ADM-UPSTREAM",
			"Port 22000 of the upstream api is also that of Envoy's readiness",
		},
		{
			"two upstreams at one port", `"cpu": 1`, fmt.Sprintf(upstreams, "api", 9192), "ADM-UPSTREAM",
			"Upstreams api and db have the same address 127.0.0.1:9192",
		},
		{"upstream twice", `"cpu": 1`, fmt.Sprintf(upstreams, "db", 9191), "ADM-CONFIG", "Upstream db is given twice"},
		{
			"upstream without a service's name", `"cpu": 1`, fmt.Sprintf(upstreams, "Api.", 9191), "ADM-UPSTREAM",
			"Upstream Api. is not a valid service name",
		},
		{
			"exposed path at the public listener", `"cpu": 1`,
			`"proxy": {"mode": "direct", "expose": {"paths": [{"path": "/a", "listenerPort": 20000, "localPathPort": ` +
				`8080}]}}`, "ADM-PORT", "Port 20000 of the exposed path /a is also that of Envoy's public listener",
		},
		{
			"name of a proxy", `"cpu": 1`, `"service": {"name": "web-sidecar-proxy", "port": 8080}`, "ADM-SVC-NAME",
			"web-sidecar-proxy is not a valid service name",
		},
		{
			"metadata that Consul reserves", `"cpu": 1`,
			`"service": {"name": "web", "port": 8080, "meta": {"consul-version": "1"}}`, "ADM-CONFIG",
			"Service metadata consul-version has a key or a value that Consul refuses",
		},
		{
			"key of metadata with a dot", `"cpu": 1`, `"service": {"name": "web", "port": 8080, "meta": {"a.b": "1"}}`,
			"ADM-CONFIG", "Service metadata a.b has a key or a value that Consul refuses",
		},
		{"long metadata", `"cpu": 1`, `"service": {"name": "web", "port": 8080, "meta": {"a": "` +
			strings.Repeat("1", 513) + `"}}`, "ADM-CONFIG",
			"Service metadata a has a key or a value that Consul refuses"},
		{
			"number as metadata", `"cpu": 1`, `"service": {"name": "web", "port": 8080, "meta": {"a": 1}}`,
			"ADM-CONFIG", "Service metadata a has a key or a value that Consul refuses",
		},
		{"more metadata than Consul takes", `"cpu": 1`, `"service": {"name": "web", "port": 8080, "meta": {` +
			strings.TrimSuffix(meta.String(), ",") + `}}`, "ADM-CONFIG",
			"The service has 62 pairs of metadata, and Consul allows 61"},
		{
			"user of the proxy", `"user": "5995:100"`, "", "ADM-USER",
			"Container web runs as the user of the proxy or of health-sync",
		},
		{
			"range of ports over the public listener", `"portMappings": [{"containerPortRange": "19995-20005"}]`, "",
			"ADM-PORT", "Port 20000 of container web is also that of Envoy's public listener",
		},
		{
			"two volumes at one path",
			`"mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}, {"sourceVolume": "more", ` +
				`"containerPath": "/data/"}]`, "", "ADM-MOUNT",
			"Container web mounts data and more at /data, so it would not start",
		},
		{
			"volume over a tmpfs",
			`"linuxParameters": {"tmpfs": [{"containerPath": "/data", "size": 8}]}, "mountPoints": [{"sourceVolume": ` +
				`"data", "containerPath": "/data"}]`, "", "ADM-MOUNT",
			"Container web mounts a tmpfs and data at /data, so it would not start",
		},
		{
			"transparent proxy on Fargate", `"cpu": 1`, `"transparentProxy": {"enabled": true}`, "ADM-TPROXY",
			"The transparent proxy does not work on Fargate",
		},
		{
			"external instances", `"cpu": 1`, "", "ADM-EXTERNAL",
			"requires_compatibilities has EXTERNAL, and external instances have no network mode for the mesh",
		},
		{
			"volume over that of the mesh",
			`"mountPoints": [{"sourceVolume": "data", "containerPath": "/consul/data"}]`, "", "ADM-VOLUME",
			"Container web mounts data at /consul/data, where the containers of the mesh share /consul",
		},
	} {
		t.Run(tt.name, func(t *testing.T) { // one after the other: they share a directory
			mesh := `{"consulServers": {"hosts": "consul.example.com"}`
			if tt.mesh != "" {
				mesh += ", " + tt.mesh
			}
			in := input{Mesh: json.RawMessage(mesh + "}")}
			task := `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
				"cpu": "512", "memory": "1024", "volumes": [{"name": "data"}, {"name": "more"}],
				"containerDefinitions": [{"name": "web", "image": "web:1", "entryPoint": ["/web"], ` +
				tt.members + `}]}`
			if tt.code == "ADM-EXTERNAL" {
				task = strings.NewReplacer(`"FARGATE"`, `"EXTERNAL"`, `"networkMode": "awsvpc", `, "").Replace(task)
			}
			if err := json.Unmarshal([]byte(task), &in.Definition); err != nil {
				t.Fatal(err)
			}
			file, err := admission.ParseMesh(in.Mesh)
			if err != nil {
				t.Fatal(err)
			}
			r, err := admission.Admit([]byte(task), admission.Options{Mesh: file, Image: consulECS})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Findings, func(f admission.Finding) bool { return f.Code == tt.code }) ||
				!r.Rejected(false) {
				t.Errorf("admit does not refuse it with %s: %v", tt.code, r.Findings)
			}
			if errs := w.PlanErrors(in.variables(t)); len(errs) != 1 || !strings.Contains(errs[0], tt.want) {
				t.Errorf("render refuses it with %q, want %q", errs, tt.want)
			}
		})
	}
}

func TestRenderRefusesVariablesThatAContainerHasTwice(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/render", stub.AWS6)
	const variable = `{"environment": [{"name": "%s", "value": "1"}]}`
	a := fmt.Sprintf(variable, "A")
	for sidecars, want := range map[string]string{
		`{"proxy": {"environment": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}}`: "sidecars sets A " +
			"in the environment of container sidecar-proxy twice",
		`{"all": ` + a + `, "proxy": ` + a + `}`: "sidecars sets A in the environment of container sidecar-proxy " +
			"twice",
		`{"meshInit": ` + fmt.Sprintf(variable, "CONSUL_ECS_CONFIG_JSON") +
			`}`: "sidecars sets CONSUL_ECS_CONFIG_JSON in the environment of " +
			"container consul-ecs-mesh-init and so does the module",
	} {
		in := readInputs(t)["agentless-fargate"]
		in.Mesh = fmt.Appendf(nil,
			`{"consulServers": {"hosts": "a"}, "proxy": {"mode": "direct"}, "admission": {"sidecars": %s}}`, sidecars)
		if _, err := admission.ParseMesh(in.Mesh); err == nil {
			t.Errorf("%s: the mesh file is accepted", sidecars)
		}
		errs := w.PlanErrors(in.variables(t))
		if got := strings.Join(errs, "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: refused with %q, want %q", sidecars, got, want)
		}
	}
}
