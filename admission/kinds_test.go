package admission

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// kinds returns "container=kind" of an admitted definition.
func kinds(r *Result) []string {
	var found []string
	for _, c := range r.After.Definition.ContainerDefinitions {
		if kind := c.DockerLabels[annotationKind]; kind != "" {
			found = append(found, c.Name+"="+kind)
		}
	}
	return found
}

func names(r *Result) string {
	var found []string
	for _, c := range r.After.Definition.ContainerDefinitions {
		found = append(found, c.Name)
	}
	return strings.Join(found, " ")
}

// withLabels returns an application with docker labels, without the prefix.
func withLabels(pairs ...string) string {
	var labels []string
	for i := 0; i < len(pairs); i += 2 {
		labels = append(labels, fmt.Sprintf("%q: %q", annotationPrefix+pairs[i], pairs[i+1]))
	}
	return plainApp + `, "dockerLabels": {` + strings.Join(labels, ", ") + `}`
}

// codesOf returns the codes of the findings but the ordinary ones.
func codesOf(r *Result) []string {
	var codes []string
	for _, f := range r.Findings {
		if !isOrdinary(f) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

func TestKindNamesTheServiceOfTheProxy(t *testing.T) {
	t.Parallel()
	const native = `}, {"name": "jobs", "image": "jobs", "dockerLabels": {"consul.hashicorp.com/native": "true"`
	for name, c := range map[string]struct{ task, app, mesh, kinds string }{
		"sidecar": {"", plainApp, plainMesh, "sidecar-proxy=connect-proxy:app"},
		"dataplane": {"", plainApp, `{"consulServers": {"hosts": "10.0.0.4"}}`,
			"consul-dataplane=connect-proxy:app"},
		"mesh gateway": {"", withLabels("gateway-kind", "mesh-gateway", "service-name", "gw"), plainMesh,
			"consul-dataplane=connect-mesh:gw"},
		"API gateway": {"", withLabels("gateway-kind", "api-gateway"), plainMesh,
			"consul-dataplane=connect-api:app"},
		"terminating gateway": {"", withLabels("gateway-kind", "terminating-gateway"), plainMesh,
			"consul-dataplane=connect-terminating:app"},
		"native": {"", withLabels("native", "true"), plainMesh, "app=connect-native:app"},
		"inferred native": {`"tags": [{"key": "consul.hashicorp.com/native", "value": "true"}],`, plainApp, plainMesh,
			"app=connect-native:app"},
		"both": {"", plainApp + native + `}`, plainMesh, "jobs=connect-native:jobs sidecar-proxy=connect-proxy:app"},
		"both, each named": {
			"", withLabels("service-name", "web") + native + `, "consul.hashicorp.com/service-name": "api"}`, plainMesh,
			"jobs=connect-native:api sidecar-proxy=connect-proxy:web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, definition(c.task, c.app), parseMesh(t, []byte(c.mesh)))
			if got := strings.Join(kinds(r), " "); got != c.kinds || r.Rejected(false) {
				t.Errorf("kinds %q, want %q, findings %v", got, c.kinds, r.Findings)
			}
			again := admit(t, r.After.Bytes(), parseMesh(t, []byte(c.mesh)))
			if string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("the second admission changes the first:\n%s", taskdef.Diff(r.After, again.After))
			}
		})
	}
}

func TestNativeApplicationGetsNoSidecar(t *testing.T) {
	t.Parallel()
	r := admit(t, definition("", withLabels("native", "true")), parseMesh(t, []byte(plainMesh)))
	if got := names(r); got != "app" || len(r.After.Definition.Volumes) != 0 {
		t.Errorf("containers %q, volumes %v", got, r.After.Definition.Volumes)
	}
}

// A proxy of the user's is completed, and no second one is added.
func TestProxyWithALabelIsCompletedOnly(t *testing.T) {
	t.Parallel()
	const envoy = `}, {"name": "envoy", "image": "mine", "user": "100", "command": ["envoy", "-c", "/consul/envoy-bootstrap.json"],
		"dockerLabels": {"consul.hashicorp.com/kind": "connect-proxy:app"}`
	r := admit(t, definition("", plainApp+envoy), parseMesh(t, []byte(plainMesh)))
	if got, want := names(r), "app envoy consul-ecs-mesh-init consul-ecs-health-sync"; got != want ||
		len(r.Findings) > 0 {
		t.Fatalf("containers %q, want %q, findings %v", got, want, r.Findings)
	}
	c := r.After.Definition.Container("envoy")
	got := fmt.Sprint(c.Image, c.User, c.EntryPoint, c.Command, c.HealthCheck.Command, c.DependsOn, len(c.MountPoints),
		c.DockerLabels)
	want := "mine100[/consul/consul-ecs envoy-entrypoint -stop-timeout 45s] [envoy -c /consul/envoy-bootstrap.json] " +
		"[CMD /consul/consul-ecs net-dial 127.0.0.1:22000] [{consul-ecs-mesh-init SUCCESS}] 1 " +
		"map[consul.hashicorp.com/kind:connect-proxy:app]"
	if got != want {
		t.Errorf("proxy %s\nwant %s", got, want)
	}
	if sync := r.After.Definition.Container("consul-ecs-health-sync"); !slices.Contains(sync.Environment,
		taskdef.KeyValue{Name: "CONSUL_ECS_IGNORE_CONTAINERS", Value: "envoy"}) {
		t.Errorf("environment of health-sync %v: the proxy is an application", sync.Environment)
	}
	if again := admit(t, r.After.Bytes(),
		parseMesh(t, []byte(plainMesh))); string(again.After.Bytes()) != string(r.After.Bytes()) {
		t.Errorf("the second admission changes the first:\n%s", taskdef.Diff(r.After, again.After))
	}
}

// What the user's proxy depends on would wait for it. A container that only has to be started
// before the proxy may.
func TestContainersBeforeAUserProxyDoNotWaitForIt(t *testing.T) {
	t.Parallel()
	const proxy = `}, {"name": "envoy", "image": "mine", "dockerLabels": {"consul.hashicorp.com/kind": ` +
		`"connect-proxy:app"}, "dependsOn": [`
	const helper = `, {"name": %q, "image": "cfg", "essential": false, %s}`
	run := func(name, condition string) string {
		return fmt.Sprintf(`{"containerName": %q, "condition": %q}`, name, condition)
	}
	for name, c := range map[string]struct {
		edges, helpers string
		wrapped        []string
	}{
		"SUCCESS": {run("cfg", "SUCCESS"), fmt.Sprintf(helper, "cfg", `"entryPoint": ["/cfg"]`),
			[]string{"app"}},
		"unwrappable":       {run("cfg", "SUCCESS"), fmt.Sprintf(helper, "cfg", `"user": "9"`), []string{"app"}},
		"unwrappable START": {run("cfg", "START"), fmt.Sprintf(helper, "cfg", `"user": "9"`), []string{"app"}},
		"START": {run("cfg", "START"), fmt.Sprintf(helper, "cfg", `"entryPoint": ["/cfg"]`),
			[]string{"app", "cfg"}},
		"of the app itself": {run("app", "START"), "", []string{"app"}},
		"transitively": {
			run("one", "START"),
			fmt.Sprintf(helper, "one", `"entryPoint": ["/one"], "dependsOn": [`+run("two", "SUCCESS")+`]`) +
				fmt.Sprintf(helper, "two", `"entryPoint": ["/two"], "dependsOn": [`+run("three", "START")+`]`) +
				fmt.Sprintf(helper, "three", `"entryPoint": ["/three"]`),
			[]string{"app", "one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := strings.TrimSuffix(string(definition("", plainApp+proxy+c.edges+"]")), "]}") + c.helpers + "]}"
			r := admit(t, []byte(doc), parseMesh(t, []byte(plainMesh)))
			var wrapped []string
			for _, c := range r.After.Definition.ContainerDefinitions {
				if len(c.EntryPoint) > 1 && c.EntryPoint[1] == wrapper {
					wrapped = append(wrapped, c.Name)
				} else if slices.ContainsFunc(c.DependsOn,
					func(d taskdef.Dependency) bool { return d.ContainerName == "envoy" }) {
					t.Errorf("%s waits for the proxy", c.Name)
				}
			}
			if !slices.Equal(wrapped, c.wrapped) || len(r.Findings) > 0 {
				t.Errorf("wrapped %v, want %v, findings %v", wrapped, c.wrapped, r.Findings)
			}
		})
	}
}

func TestProxyWithoutItsKindIsRefused(t *testing.T) {
	t.Parallel()
	doc, err := taskdef.Parse(definition("", plainApp))
	if err != nil {
		t.Fatal(err)
	}
	p := standard()
	p.mutators = append(p.mutators, step{name: "by hand", run: func(t *task) {
		for _, n := range t.doc.containers() {
			if t.doc.text(n, "name") == "sidecar-proxy" {
				n.Get("dockerLabels").Delete(annotationKind)
			}
		}
	}})
	tk := newTask(doc, formatECS, Options{Mesh: parseMesh(t, []byte(plainMesh))})
	if err := p.run(tk); err != nil {
		t.Fatal(err)
	}
	if got := codesOf(&Result{Findings: tk.doc.findings}); !slices.Equal(got, []string{"ADM-KIND"}) {
		t.Errorf("findings %v", tk.doc.findings)
	}
}

func TestExposedPathsGetListeners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, mesh, paths string }{
		"listed": {"/health:8080", plainMesh,
			`[{"listenerPort":21867,"path":"/health","localPathPort":8080,"protocol":"http"}]`},
		"own listener":   {"/health:8080:9999 /ready:8081:9998", plainMesh, `[{"listenerPort":9999,"path":"/health","localPathPort":8080,"protocol":"http"},{"listenerPort":9998,"path":"/ready","localPathPort":8081,"protocol":"http"}]`},
		"there already":  {"/health:8080", strings.Replace(plainMesh, `"direct"`, `"direct", "expose": {"paths": [{"listenerPort": 1, "path": "/health", "localPathPort": 8080}]}`, 1), `[{"listenerPort":1,"path":"/health","localPathPort":8080}]`},
		"of the checks":  {"true", `{"service": {"port": 80, "checks": [{"checkId": "a", "name": "a", "http": "http://127.0.0.1:8080/live?x=1", "interval": "5s"}, {"checkId": "b", "name": "b", "grpc": "127.0.0.1:9090/x", "interval": "5s"}, {"checkId": "c", "name": "c", "tcp": "127.0.0.1:1", "interval": "5s"}]}, "admission": {"client": {"retryJoin": ["10.0.0.4"]}}}`, `[{"listenerPort":21859,"path":"/live","localPathPort":8080,"protocol":"http"},{"listenerPort":21908,"path":"/grpc.health.v1.Health/Check","localPathPort":9090,"protocol":"http2"}]`},
		"not asked for":  {"false", plainMesh, ""},
		"without a port": {"/health", plainMesh, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, definition("", withLabels("expose-checks", c.value)), parseMesh(t, []byte(c.mesh)))
			env := r.After.Definition.Container("consul-ecs-mesh-init").Environment[0].Value
			_, rest, _ := strings.Cut(env, `"paths":`)
			if got := strings.SplitAfter(rest, "]")[0]; got != c.paths {
				t.Errorf("paths %s, want %s, findings %v", got, c.paths, r.Findings)
			}
		})
	}
}

// The hash is of all but itself, so that it reveals changes after the admission.
func TestAdmissionTagIsTheHashOfTheDefinition(t *testing.T) {
	t.Parallel()
	tag := func(app string) string {
		r := admit(t, definition("", app), parseMesh(t, []byte(plainMesh)))
		tags := r.After.Definition.Tags
		last := tags[len(tags)-1]
		if last.Key != "consul.hashicorp.com/admission" {
			t.Fatalf("tags %v", tags)
		}
		return last.Value
	}
	one, again, other := tag(plainApp), tag(plainApp), tag(plainApp+`, "user": "9"`)
	if !regexp.MustCompile("^v1:[0-9a-f]{64}$").MatchString(one) {
		t.Errorf("hash %q, want v1: and 64 hexadecimal digits", one)
	}
	if one != again {
		t.Errorf("hashes of the same definition %q and %q", one, again)
	}
	if one == other {
		t.Errorf("hash %q also of another definition", one)
	}
}

// In a template of Copilot the name of the application is a parameter.
func TestApplicationWithAComputedNameIsPutBehindTheProxy(t *testing.T) {
	t.Parallel()
	const doc = `{"Family": "web", "NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024", "ContainerDefinitions": [
		{"Name": {"Ref": "WorkloadName"}, "Image": "web", "EntryPoint": ["/web"], "HealthCheck": {"Command": ["CMD", "/web"]}, "PortMappings": [{"ContainerPort": 80}]}]}`
	r := admit(t, []byte(doc), parseMesh(t, []byte(plainMesh)))
	c := r.After.Definition.ContainerDefinitions[0]
	if len(c.MountPoints) != 1 || wrapperWords(c.EntryPoint) == 0 {
		t.Errorf("mounts %v, want one; entryPoint %q, want %s", c.MountPoints, c.EntryPoint, wrapper)
	}
	want := "info ADM-COMPUTED $.ContainerDefinitions[0].Name: the name of this container is known at deployment " +
		"only: the result of its health check is not sent to Consul"
	if len(r.Findings) != 1 || r.Findings[0].String() != want {
		t.Errorf("findings %v, want %s", r.Findings, want)
	}
}

// The key of gossip is the agent's alone: mesh-init and health-sync never get it.
func TestSecretsOfTheClientReachNoOtherContainer(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"admission": {"secrets": [{"name": "CONSUL_CACERT_PEM", "valueFrom": "ca"}],
		"client": {"retryJoin": ["10.0.0.4"], "secrets": [{"name": "CONSUL_GOSSIP_ENCRYPTION_KEY", "valueFrom": "key"}]}}}`))
	got := map[string]string{}
	for _, c := range admit(t, definition("", plainApp), mesh).After.Definition.ContainerDefinitions {
		var names []string
		for _, s := range c.Secrets {
			names = append(names, s.Name+"="+s.ValueFrom)
		}
		got[c.Name] = strings.Join(names, " ")
	}
	want := map[string]string{
		"app": "", "consul-ecs-install": "", "sidecar-proxy": "", "consul-ecs-mesh-init": "CONSUL_CACERT_PEM=ca",
		"consul-client": "CONSUL_CACERT_PEM=ca CONSUL_GOSSIP_ENCRYPTION_KEY=key",
	}
	if !maps.Equal(got, want) {
		t.Errorf("secrets %v, want %v", got, want)
	}
}
