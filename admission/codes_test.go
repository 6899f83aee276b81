package admission

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	plainMesh = `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}}`
	plainApp  = `"entryPoint": ["/app"]`
)

// breach is a definition that breaks one rule of admission.
type breach struct {
	code string
	// task, app and mesh replace parts of a valid definition; doc all of it. Mesh "-" is
	// no mesh file.
	task, app, mesh, doc string
	// besides is a rule of ECS that cannot but be broken, too.
	besides string
	// lock has the configuration of the application's image.
	lock *taskdef.ImageLock
}

func breaches() []breach {
	label := func(name, value string) string {
		return fmt.Sprintf(`%s, "dockerLabels": {"consul.hashicorp.com/%s": %q}`, plainApp, name, value)
	}
	mesh := func(member string) string { return strings.TrimSuffix(plainMesh, "}") + ", " + member + "}" }
	const ec2 = `{"family": "app", "networkMode": "awsvpc", %s "containerDefinitions": [{"name": "app", "image": "app",
		"memory": 64, "entryPoint": ["/app"], "portMappings": [{"containerPort": 8080}]%s}]}`
	conflict := fmt.Sprintf(ec2, "", `, "dockerLabels": {"consul.hashicorp.com/service-name": "a"}}, {"name": "two", "image": "app", "memory": 64, "entryPoint": ["/app"], "dockerLabels": {"consul.hashicorp.com/service-name": "b"}`)
	return []breach{
		{code: codeAnnConflict, doc: conflict, mesh: mesh(`"transparentProxy": {"enabled": false}`)},
		{code: codeAnnTag, task: `"tags": [{"key": "consul.hashicorp.com/service-name", "value": "b"}],`,
			app: label("service-name", "a")},
		{code: codeAnnHidden, doc: `{"ContainerDefinitions": [{"Name": "app", "Image": "app", "Memory": 64, ` +
			`"DockerLabels": {"Ref": "Labels"}}]}`, mesh: "-", besides: codeNotInjected},
		{code: codeAnnUnknown, app: label("service-nmae", "x")},
		{code: codeAnnValue, app: label("upstreams", "api")},
		{code: codeAppMesh, task: `"proxyConfiguration": {"type": "APPMESH", "containerName": "app", "properties": [{"name": "IgnoredUID", "value": "1337"}, {"name": "ProxyIngressPort", "value": "15000"}, {"name": "ProxyEgressPort", "value": "15001"}, {"name": "AppPorts", "value": "80"}, {"name": "EgressIgnoredIPs", "value": "169.254.170.2"}]},`, app: plainApp},
		{code: codeArch, task: `"runtimePlatform": {"cpuArchitecture": "ARM64"},`, doc: `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024", "runtimePlatform": {"cpuArchitecture": "ARM64"}, "containerDefinitions": [{"name": "app", "image": "app:1-amd64", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]}`},
		{code: codeArchLocked, app: plainApp, lock: lockOf(map[string]taskdef.ImageConfig{"linux/arm64": {}})},
		{code: codeAttestation, doc: strings.Replace(fmt.Sprintf(ec2, `"trustedExecutionConfiguration": {"isolationMode": "CONFIDENTIAL_SANDBOX", "attestationPolicy": "YWJj"},`, ""), `"networkMode"`, `"requiresCompatibilities": ["MANAGED_INSTANCES"], "networkMode"`, 1)},
		{code: codeBootstrap, mesh: mesh(`"bootstrapDir": "/consul/../x"`)},
		{code: codeChanged, app: plainApp + `}, {"name": "consul-ecs-mesh-init", "image": "consul-ecs:1.0.0-beta.1", ` +
			`"essential": false, "dockerLabels": {"consul.hashicorp.com/injected-by": "consul-ecs"}, "user": "7"`},
		{code: codeComputed, doc: `{"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024", "ContainerDefinitions": [{"Name": "app", "Image": "app", "EntryPoint": ["/app"], "PortMappings": [{"ContainerPort": 80}]}, {"Fn::If": ["Debug", {"Name": "debug", "Image": "debug"}, {"Ref": "AWS::NoValue"}]}]}`},
		{code: codeConfig, mesh: mesh(`"logLevel": "LOUD"`)},
		{code: codeContainers, doc: `{"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", ` +
			`"Memory": "1024", "ContainerDefinitions": {"Fn::If": ["C", [], []]}}`},
		{code: codeCPU, app: plainApp + `, "cpu": 512`},
		{code: codeDefault, app: plainApp},
		{code: codeDepHang, app: plainApp + `, "dependsOn": [{"containerName": "db", "condition": "HEALTHY"}]}, {"name": "db", "image": "db", "essential": false, "entryPoint": ["/db"], "healthCheck": {"command": ["CMD", "/db"]}`},
		{code: codeEntryPoint, app: `"command": ["/serve"]`},
		{code: codeDropped, app: plainApp + `}, {"name": "late", "image": "late", "entryPoint": ["/late"], "essential": false, "dockerLabels": {"consul.hashicorp.com/depends": "false"}, "dependsOn": [{"containerName": "consul-client", "condition": "HEALTHY"}]`},
		{code: codeEssential, doc: fmt.Sprintf(ec2, "", `, "essential": false`),
			mesh: mesh(`"transparentProxy": {"enabled": false}`)},
		{code: codeExecRole, mesh: mesh(`"admission": {"secrets": [{"name": "CONSUL_HTTPS_CACERT_PEM", "valueFrom": "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca"}]}`), doc: strings.Replace(string(definition("", plainApp)), "executionRoleArn", "x-role", 1), besides: codeKey},
		{code: codeExpose, app: label("expose-checks", "true")},
		{code: codeExternal, doc: `{"family": "app", "requiresCompatibilities": ["EXTERNAL"], ` +
			`"containerDefinitions": [{"name": "app", "image": "app", "memory": 64, "entryPoint": ["/app"]}]}`},
		{code: codeFirst, app: plainApp + `, "logConfiguration": {"logDriver": "awsfirelens"}}, {"name": "router", ` +
			`"image": "fluent/fluent-bit", "essential": false, "firelensConfiguration": {"type": "fluentbit"}`},
		{code: codeFlag, app: `"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "-shutdown-delay=x", "/app"]`},
		{code: codeHealth, app: plainApp + `, "healthCheck": {"command": ["/app", "check"]}`},
		{code: codeHealthFrom, app: plainApp + `, "healthCheck": {"command": ["CMD", "/a"]}}, {"name": "two", ` +
			`"image": "app", "entryPoint": ["/app"], "healthCheck": {"command": ["CMD", "/a"]}`},
		{code: codeHealthStart, app: plainApp + `, "healthCheck": {"command": ["CMD", "/app"], "startPeriod": 59}`},
		{code: codeHealthTime, app: plainApp +
			`, "healthCheck": {"command": ["CMD", "/app"], "interval": 5, "timeout": 6}`},
		{code: codeImage, app: plainApp, lock: lockOf(nil)},
		{code: codeImageHealth, app: plainApp, lock: lockOf(
			bothPlatforms(taskdef.ImageConfig{Healthcheck: &taskdef.ImageHealth{Test: []string{"CMD", "/app"}}}))},
		{code: codeKey, app: plainApp + `, "x-secret-store": []`},
		{code: codeKeyNear, app: plainApp + `, "enviroment": []`},
		{code: codeKind, app: plainApp + `}, {"name": "envoy", "image": "envoy", "dockerLabels": ` +
			`{"consul.hashicorp.com/kind": "connect-proxy:other"}`},
		{code: codeNoImage, app: plainApp, besides: "container-image-blank"},
		{code: codeLaunch, doc: fmt.Sprintf(ec2, "", "")},
		{code: codeLogs, app: plainApp},
		{code: codeLogBlock, mesh: mesh(`"admission": {"logConfiguration": {"logDriver": "json-file", "options": ` +
			`{"mode": "blocking"}}}`), besides: "fargate-log-driver"},
		{code: codeMemory, app: plainApp + `, "memory": 1000`},
		{code: codeMount, task: `"volumes": [{"name": "a"}, {"name": "b"}],`, app: plainApp + `, "mountPoints": ` +
			`[{"sourceVolume": "a", "containerPath": "/data"}, {"sourceVolume": "b", "containerPath": "/data/"}]`},
		{code: codeNameAWS, app: plainApp +
			`}, {"name": "aws-guardduty-agent-1", "image": "mine", "entryPoint": ["/agent"]`},
		{code: codeName, app: plainApp + `}, {"name": "consul-dataplane", "image": "mine"`},
		{code: codeNative, task: `"tags": [{"key": "consul.hashicorp.com/native", "value": "true"}],`,
			app: plainApp + `}, {"name": "two", "image": "app", "entryPoint": ["/app"]`},
		{code: codeNetDefault, doc: `{"family": "app", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024", "containerDefinitions": [{"name": "app", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]}`},
		{code: codeNetMode, doc: strings.Replace(fmt.Sprintf(ec2, "", ""), "awsvpc", "bridge", 1),
			mesh: mesh(`"transparentProxy": {"enabled": false}`)},
		{code: codeNotInjected, mesh: "-"},
		{code: codeOS, doc: fmt.Sprintf(ec2,
			`"runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"},`, "")},
		{code: codeOutput, task: `"revision": 3,`},
		{code: codePort, app: plainApp + `}, {"name": "two", "image": "app", "entryPoint": ["/app"], "essential": ` +
			`false, "portMappings": [{"containerPort": 20000}]`},
		{code: codePortChoice, app: plainApp +
			`}, {"name": "two", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 81}]`},
		{code: codePortChosen, app: plainApp + `}, {"name": "two", "image": "app", "entryPoint": ["/app"], ` +
			`"portMappings": [{"containerPort": 81, "appProtocol": "grpc"}]`},
		{code: codePortPlain, app: plainApp + `}, {"name": "two", "image": "app", "entryPoint": ["/app"], ` +
			`"essential": false, "portMappings": [{"containerPort": 81}]`},
		{code: codeSecret, app: plainApp + `, "environment": [{"name": "API_TOKEN", "value": "x"}]`},
		{code: codeReplaced, task: `"volumes": [{"name": "consul_data"}],`, app: plainApp + `}, {"name": "consul-dataplane", "image": "other", "mountPoints": [{"sourceVolume": "consul_data", "containerPath": "/consul"}]`},
		{code: codeROFS, app: plainApp + `}, {"name": "envoy", "image": "envoy", "readonlyRootFilesystem": true, ` +
			`"dockerLabels": {"consul.hashicorp.com/kind": "connect-proxy:app"}`},
		{code: codeServers, mesh: `{"proxy": {}}`},
		{code: codeSidecarUser, doc: fmt.Sprintf(ec2, "", ""), mesh: mesh(`"transparentProxy": {"enabled": true}, ` +
			`"admission": {"sidecars": {"healthSync": {"user": "1000"}}}`), besides: codeTProxyOn},
		{code: codeSidecars, mesh: mesh(`"admission": {"sidecars": {"client": {"cpu": 128}}}`)},
		{code: codeSize, app: plainApp + `, "environment": [{"name": "LONG", "value": "` + strings.Repeat("x", 61000) +
			`"}]`},
		{code: codeStop, app: `"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "-shutdown-delay=30s", "/app"]`},
		{code: codeStopSignal, app: plainApp,
			lock: lockOf(bothPlatforms(taskdef.ImageConfig{StopSignal: "SIGRTMIN+3"}))},
		{code: codeServiceFrom, app: plainApp},
		{code: codeServiceName, app: label("service-name", "web-sidecar-proxy")},
		{code: codeServicePort, doc: `{"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024", "ContainerDefinitions": [{"Name": "app", "Image": "app", "EntryPoint": ["/app"], "PortMappings": [{"ContainerPort": {"Ref": "Port"}}]}]}`},
		{code: codeTagsAbsent, doc: `{"taskDefinition": ` + string(definition("", plainApp)) + `}`},
		{code: codeTagsLost, doc: string(describedWithoutTags), besides: codeTagsAbsent},
		{code: codeTProxy, mesh: mesh(`"transparentProxy": {"enabled": true}`), besides: "fargate-capability"},
		{code: codeTProxyOn, doc: fmt.Sprintf(ec2, "", ""), mesh: mesh(`"transparentProxy": {"enabled": true}`)},
		{code: codeUpstream, app: label("upstreams", "api:9000 db:9000")},
		{code: codeUser, app: plainApp + `, "user": "5995"`},
		{code: codeUserRoot, doc: strings.Replace(fmt.Sprintf(ec2, "", `, "user": "root"`), "awsvpc", "host", 1),
			mesh: `{"gateway": {"kind": "mesh-gateway"}, "admission": {"client": {"retryJoin": ["10.0.0.4"]}}}`},
		{code: codeVolume, task: `"volumes": [{"name": "data"}],`,
			app: plainApp + `, "mountPoints": [{"sourceVolume": "data", "containerPath": "/consul/data"}]`},
		{code: codeVolumeOwn, task: `"volumes": [{"name": "consul_data", "efsVolumeConfiguration": {"fileSystemId": ` +
			`"fs-12345678"}}],`},
		{code: codeVolumeOwner, app: plainApp, mesh: mesh(`"admission": {"sidecars": {"meshInit": {"user": "1000"}}}`)},
		{code: codeVolumeTask, doc: `[{"name": "app", "image": "app", "memory": 64, "entryPoint": ["/app"], ` +
			`"portMappings": [{"containerPort": 80}]}]`, mesh: mesh(`"transparentProxy": {"enabled": false}`)},
		{code: codeWrap, app: `"user": "1000"`},
	}
}

func TestEachBreachHasItsCodeAndNoOther(t *testing.T) {
	t.Parallel()
	for _, b := range breaches() {
		t.Run(b.code, func(t *testing.T) {
			t.Parallel()
			doc := []byte(b.doc)
			if b.doc == "" {
				doc = definition(b.task, cmp.Or(b.app, plainApp))
			}
			options := Options{Flags: wrapperFlagSet, Lock: b.lock}
			if b.mesh != "-" {
				options.Mesh = parseMesh(t, []byte(cmp.Or(b.mesh, plainMesh)))
			}
			if b.code == codeNoImage {
				options.Mesh.settings.Images.ConsulECS = ""
			}
			r, err := Admit(doc, options)
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, f := range r.Findings {
				if ignored := f.Code == b.besides || isOrdinary(f); f.Code == b.code || !ignored {
					codes = append(codes, f.Code)
				}
				if strings.ContainsAny(f.Message+f.Fix, "{}") {
					t.Errorf("a placeholder is not filled: %s", f)
				}
			}
			if !slices.Equal(slices.Compact(codes), []string{b.code}) {
				t.Errorf("codes %v", r.Findings)
			}
		})
	}
}

func TestEachCodeHasABreach(t *testing.T) {
	t.Parallel()
	var codes, broken []string
	for _, c := range definitionCodes() {
		codes = append(codes, c.Code)
	}
	for _, b := range breaches() {
		broken = append(broken, b.code)
	}
	slices.Sort(broken)
	if !slices.Equal(codes, broken) {
		t.Errorf("codes %v, breaches %v", codes, broken)
	}
}

func TestAllFindingsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	r := admit(t, definition(`"pidMode": "host",`, `"user": "5996", "entryPoint": ["/app"], "privileged": true`),
		parseMesh(t, []byte(plainMesh)))
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Code+" "+f.Path)
	}
	want := []string{"fargate-privileged $.containerDefinitions[0].privileged",
		"ADM-USER $.containerDefinitions[0].user", "fargate-pid-mode $.pidMode"}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}

// Otherwise a definition could print commands to the runner of a CI job.
func TestFindingIsOneLine(t *testing.T) {
	t.Parallel()
	r := admit(t, []byte(`{"family": "app", "networkMode": "awsvpc", "containerDefinitions": [
		{"name": "a\n::error::b", "image": "app", "memory": 64, "entryPoint": ["/app"], "user": "5995", "k\ney": 1}]}`),
		parseMesh(t, []byte(plainMesh)))
	for _, f := range r.Findings {
		if strings.Contains(f.String(), "\n") {
			t.Errorf("a finding has several lines: %s", f)
		}
	}
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return strings.HasPrefix(f.String(),
			`error ADM-USER $.containerDefinitions[0].user: container a\n::error::b runs`)
	}) {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestStrictRejectsWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		severity      taskdef.Severity
		loose, strict bool
	}{{Info, false, false}, {taskdef.Warn, false, true}, {taskdef.Error, true, true}} {
		r := Result{Findings: []Finding{{Severity: c.severity}}}
		if r.Rejected(false) != c.loose || r.Rejected(true) != c.strict {
			t.Errorf("%s: rejected %v, strictly %v", c.severity, r.Rejected(false), r.Rejected(true))
		}
	}
}

// The table of codes, with which the page ends, is made of the rules; -update writes it.
func TestPageEndsWithTheTableOfCodes(t *testing.T) {
	t.Parallel()
	const header = "| Code | Severity | Finding | What to do |\n|---|---|---|---|\n"
	page, err := os.ReadFile("../docs/ADMISSION.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(page), header)
	if !found {
		t.Fatal("docs/ADMISSION.md has no table of codes")
	}
	table := strings.Builder{}
	for _, c := range definitionCodes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, c.Text, c.Fix)
	}
	testkit.Golden(t, "../../docs/ADMISSION.md", []byte(text+header+table.String()))
}
