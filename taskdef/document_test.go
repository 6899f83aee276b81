package taskdef

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func codes(found []Violation) []string {
	var codes []string
	for _, v := range found {
		codes = append(codes, v.Code+" "+v.Path)
	}
	return codes
}

// accepted are definitions at the edge of a rule, which ECS registers.
func TestAcceptedDefinitions(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string][]byte{
		"Fargate":                  []byte(webTask),
		"EC2":                      []byte(hostTask),
		"ten containers":           changed(t, webTask, containers(2, 10)...),
		"vCPU and GB":              changed(t, webTask, `cpu = ".5 vcpu"`, `memory = "1gb"`),
		"Fargate 256 and 2048":     changed(t, webTask, `memory = "2048"`),
		"Fargate 16384 and 122880": changed(t, webTask, `cpu = "16384"`, `memory = "122880"`),
		"Windows": changed(t, webTask, `cpu = "1024"`, `memory = "2048"`,
			`runtimePlatform = {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}`),
		"memory of the task only": changed(t, hostTask, `memory = "512"`, "-"+app+".memory",
			"-"+second+".memory"),
		"reservation 0":                     changed(t, hostTask, app+".memoryReservation = 0"),
		"least memory, and cpu of the task": changed(t, hostTask, app+".memory = 6", `cpu = "128"`),
		"reservation only":                  changed(t, hostTask, "-"+app+".memory", app+".memoryReservation = 64"),
		"both compatibilities":              changed(t, webTask, `requiresCompatibilities = ["EC2", "FARGATE"]`),
		"role by name":                      changed(t, hostTask, `taskRoleArn = "web"`),
		"role with a path, of China": changed(t, hostTask,
			`taskRoleArn = "arn:aws-cn:iam::111122223333:role/consul-ecs/web"`),
		"disabled health check": changed(t, webTask, app+`.healthCheck = {"command": ["NONE"]}`),
		"health check at its limits": changed(t, webTask, app+
			`.healthCheck = {"command": ["check"], "interval": 300, "timeout": 60, "retries": 10, "startPeriod": 300}`),
		"not privileged":           changed(t, webTask, app+".privileged = false"),
		"pidMode task":             changed(t, webTask, `pidMode = "task"`),
		"timeouts":                 changed(t, webTask, app+".startTimeout = 2", app+".stopTimeout = 120"),
		"long stop timeout on EC2": changed(t, hostTask, app+".stopTimeout = 600"),
		"same host port":           changed(t, webTask, app+".portMappings[0].hostPort = 8080"),
		"all GPUs": changed(t, hostTask,
			app+`.resourceRequirements = [{"type": "GPU", "value": "ALL"}]`),
		"secret options": changed(t, hostTask,
			logs+` = {"logDriver": "splunk", "secretOptions": [{"name": "splunk-token", "valueFrom": "token"}]}`),
		"two protocols": changed(t, webTask,
			app+`.portMappings[1] = {"containerPort": 8080, "protocol": "udp"}`),
		"host ports chosen by the host": changed(t, hostTask,
			app+`.portMappings = [{"containerPort": 80, "hostPort": 0}, {"containerPort": 80}]`),
		"one container port, two host's": changed(t, hostTask,
			app+`.portMappings = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 80, "hostPort": 8081}]`),
		"port ranges of two protocols": changed(t, hostTask, app+
			`.portMappings = [{"containerPortRange": "80-89"}, {"containerPortRange": "80-89", "protocol": "udp"}]`),
		"port range of two containers": changed(t, hostTask, app+`.portMappings `+
			`= [{"containerPortRange": "80-89"}]`, second+`.portMappings = [{"containerPortRange": "80-89"}]`),
		"port name":  changed(t, webTask, app+`.portMappings[0].name = "_"`),
		"no network": changed(t, hostTask, `networkMode = "none"`, app+".portMappings = []"),
		"port ranges side by side": changed(t, webTask,
			app+`.portMappings = [{"containerPortRange": "8080-8089"}, {"containerPortRange": "8090-8099"}]`),
		"log router": changed(t, webTask, firelens, router),
		"router's file in the image": changed(t, webTask, firelens, second+`.firelensConfiguration = {"type": `+
			`"fluentbit", "options": {"config-file-type": "file", "config-file-value": "/extra.conf"}}`),
		"known awslogs options": changed(t, webTask, logs+`.options.awslogs-datetime-format = "%Y"`,
			logs+`.options.mode = "non-blocking"`, logs+`.options.max-buffer-size = "25m"`),
		"awslogs on EC2 without a prefix": changed(t, hostTask,
			logs+` = {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r"}}`),
		"other log driver on EC2": changed(t, hostTask, logs+` = {"logDriver": "json-file"}`),
		"secret of Secrets Manager": changed(t, webTask,
			app+`.secrets[0].valueFrom = "arn:aws:secretsmanager:us-east-1:444455556666:secret:web"`),
		"parameter by name": changed(t, webTask, app+`.secrets[0].valueFrom = "/web/password"`),
		"blank variable":    changed(t, webTask, app+`.environment[0].value = ""`),
		"environment file": changed(t, webTask,
			app+`.environmentFiles = [{"type": "s3", "value": "arn:aws:s3:::b/web.env"}]`),
		"EFS with everything": changed(t, webTask, efs+`{"fileSystemId": "fs-1", "rootDirectory": "/", "transitEncryption": "ENABLED", "transitEncryptionPort": 2999, "authorizationConfig": {"accessPointId": "fsap-1", "iam": "ENABLED"}}`),
		"EFS beside an empty host": changed(t, webTask, efs+`{"fileSystemId": "fs-1"}`, "volumes[0].host = {}",
			"volumes[0].configuredAtLaunch = false"),
		"EFS with a directory": changed(t, webTask,
			efs+`{"fileSystemId": "fs-1", "rootDirectory": "/srv"}`),
		"volume at launch": changed(t, webTask, "volumes[0].configuredAtLaunch = true"),
		"shared docker volume": changed(t, hostTask,
			`volumes[0].dockerVolumeConfiguration = {"scope": "shared", "autoprovision": false}`),
		"ephemeral storage":        changed(t, webTask, `ephemeralStorage = {"sizeInGiB": 21}`),
		"ephemeral storage of 200": changed(t, webTask, `ephemeralStorage = {"sizeInGiB": 200}`),
		"dependency started": changed(t, webTask, second+".essential = true",
			app+`.dependsOn[0].condition = "START"`),
		"links": changed(t, hostTask, app+`.links = ["side:alias"]`),
		"unlimited": changed(t, hostTask,
			app+`.ulimits = [{"name": "core", "softLimit": -1, "hardLimit": -1}]`),
		"App Mesh": changed(t, webTask, mesh,
			`proxyConfiguration.properties[2] = {"name": "EgressIgnoredPorts", "value": ""}`),
		"placement on EC2": changed(t, hostTask,
			`placementConstraints = [{"type": "memberOf", "expression": "attribute:ecs.cpu-architecture == arm64"}]`),
		"GPU on EC2": changed(t, hostTask,
			app+`.resourceRequirements = [{"type": "GPU", "value": "1"}]`, app+".privileged = true"),
		"capability of Fargate": changed(t, webTask,
			app+`.linuxParameters = {"capabilities": {"add": ["SYS_PTRACE"], "drop": ["NET_RAW"]}}`),
		"diamond of dependencies":         changed(t, hostTask, append(containers(2, 4), app+`.links = ["side", "c2"]`, second+`.links = ["c3"]`, "containerDefinitions[2].memory = 8", "containerDefinitions[3].memory = 8", `containerDefinitions[2].links = ["c3"]`)...),
		"document of the greatest length": changed(t, hostTask, app+`.command = ["`+long(65129)+`"]`),
		"digest of a long image":          changed(t, webTask, app+`.image = "`+long(255)+`@sha256:`+long(64)+`"`),
		"restart policy": changed(t, webTask,
			app+`.restartPolicy = {"enabled": true, "restartAttemptPeriod": 60}`),
		"answer without tags": []byte(`{"taskDefinition": ` + webTask + `, "tags": []}`),
		"answer with tags of AWS": []byte(`{"taskDefinition": ` + webTask +
			`, "tags": [{"key": "aws:cloudformation:stack-name", "value": "v"}]}`),
		"answer of DescribeTaskDefinition": []byte(`{"taskDefinition": ` + webTask +
			`, "tags": [{"key": "k", "value": "v"}]}`),
	} {
		if found := parse(t, doc).Validate(); len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}

func TestPathsOfADescribeAnswer(t *testing.T) {
	t.Parallel()
	doc := `{"taskDefinition": ` + string(changed(t, webTask, "-family")) + `, "tags": ` + tags(51) + `}`
	want := []string{"family-blank $.taskDefinition.family", "tag-count $.tags"}
	if diff := cmp.Diff(want, codes(parse(t, []byte(doc)).Validate())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// AWS's own tags are not judged, and count in the paths of the others.
func TestPathsBesideTagsOfAWS(t *testing.T) {
	t.Parallel()
	doc := `{"taskDefinition": ` + webTask + `, "tags": [{"key": "aws:a", "value": "*"}, {"key": "k", "value": "v"}, ` +
		`{"key": "aws:b", "value": "v"}, {"key": "a*", "value": "v"}]}`
	if diff := cmp.Diff([]string{"tag-key $.tags[3].key"}, codes(parse(t, []byte(doc)).Validate())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	_, err := Parse([]byte(strings.Replace(doc, `"a*"`, `["a"]`, 1)))
	if err == nil || !strings.Contains(err.Error(), "$.tags[3].key: must be a string") {
		t.Errorf("error %v", err)
	}
}

const template = `{
  "Parameters": {"Image": {"Type": "String"}},
  "Resources": {
    "Cluster": {"Type": "AWS::ECS::Cluster"},
    "Web": {
      "Type": "AWS::ECS::TaskDefinition",
      "Properties": {
        "NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": 256, "Memory": {"Ref": "Memory"},
        "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "TaskRoleArn": {"Ref": "AWS::NoValue"},
        "Volumes": [{"Name": "data", "EFSVolumeConfiguration": {"FilesystemId": {"Ref": "Fs"}, "AuthorizationConfig": {"IAM": "ENABLED"}}}],
        "ContainerDefinitions": [
          {
            "Name": "app", "Image": {"Fn::Sub": "${Image}:1"}, "Essential": "true", "Hostname": "web",
            "PortMappings": [{"ContainerPort": "8080", "HostPort": {"Ref": "Port"}}],
            "DockerLabels": {"consul.hashicorp.com/mesh-inject": true, "a.b": {"Ref": "Label"}},
            "LogConfiguration": {"LogDriver": "awslogs", "Options": {"awslogs-group": {"Ref": "Logs"}, "awslogs-region": {"Ref": "AWS::Region"}}},
            "DependsOn": [{"ContainerName": {"Ref": "Init"}, "Condition": "SUCCESS"}],
            "HealthCheck": {"Command": ["CMD", "x"], "Interval": "301"},
            "entryPoint": ["/app"]
          },
          {"Fn::If": ["WithInit", {"Name": "init", "Image": "init:1", "Essential": false}, {"Ref": "AWS::NoValue"}]}
        ],
        "ProxyConfiguration": {"ContainerName": "app", "ProxyConfigurationProperties": [{"Name": "ProxyIngressPort", "Value": {"Ref": "Ingress"}}, {"Name": "ProxyEgressPort", "Value": "15001"}]}
      }
    }
  }
}`

func TestTemplateIsReadWithItsUnknownValues(t *testing.T) {
	t.Parallel()
	d, err := ParseTemplate([]byte(template), "")
	if err != nil {
		t.Fatal(err)
	}
	at := "$.Resources.Web.Properties"
	want := []string{
		"efs-iam-encryption " + at + ".Volumes[0].EFSVolumeConfiguration.TransitEncryption",
		"health-check-high " + at + ".ContainerDefinitions[0].HealthCheck.Interval",
		"awsvpc-hostname " + at + ".ContainerDefinitions[0].Hostname",
		"fargate-stream-prefix " + at + ".ContainerDefinitions[0].LogConfiguration.Options",
	}
	if diff := cmp.Diff(want, codes(d.Validate())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	unknown := []string{
		".ContainerDefinitions[0].DependsOn[0].ContainerName", `.ContainerDefinitions[0].DockerLabels["a.b"]`,
		".ContainerDefinitions[0].Image",
		`.ContainerDefinitions[0].LogConfiguration.Options["awslogs-group"]`,
		`.ContainerDefinitions[0].LogConfiguration.Options["awslogs-region"]`,
		".ContainerDefinitions[0].PortMappings[0].HostPort", ".ContainerDefinitions[1]", ".ExecutionRoleArn", ".Family",
		".Memory",
		".ProxyConfiguration.ProxyConfigurationProperties[0].Value", ".Volumes[0].EFSVolumeConfiguration.FilesystemId",
	}
	for i := range unknown {
		unknown[i] = at + unknown[i]
	}
	got := d.Unknown()
	slices.Sort(got)
	if diff := cmp.Diff(unknown, got); diff != "" {
		t.Errorf("unknown values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Warning{{at + ".ContainerDefinitions[0].entryPoint",
		`unknown key; did you mean "EntryPoint"?`, "EntryPoint"}}, d.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	c := d.Definition.ContainerDefinitions[0]
	testkit.Equal(t, "values that CloudFormation converts",
		[]any{string(d.Definition.CPU), int(*c.PortMappings[0].ContainerPort), bool(*c.Essential),
			string(c.DockerLabels["consul.hashicorp.com/mesh-inject"])}, []any{"256", 8080, true, "true"})
}

// CloudFormation replaces {{resolve:...}} by what is stored elsewhere.
func TestDynamicReferenceIsUnknown(t *testing.T) {
	t.Parallel()
	d, err := ParseTemplate([]byte(`{"Cpu": "{{resolve:ssm:/web/cpu}}", "ContainerDefinitions": [{"Name": "web", "Image": "web:{{resolve:ssm:/web/tag:1}}",
		"Memory": "{{resolve:ssm:/web/memory}}", "Essential": "{{resolve:ssm:/web/essential}}"}]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"$.ContainerDefinitions[0].Essential", "$.ContainerDefinitions[0].Image",
		"$.ContainerDefinitions[0].Memory", "$.Cpu", "$.Family"}
	if diff := cmp.Diff(want, d.Unknown()); diff != "" || len(d.Validate()) > 0 {
		t.Errorf("violations %v, unknown values (-want +got):\n%s", d.Validate(), diff)
	}
	if _, err := Parse([]byte(`{"containerDefinitions": [{"memory": "{{resolve:ssm:/web/memory}}"}]}`)); err == nil {
		t.Error("the ECS API knows no dynamic references")
	}
}

func TestTemplateWithoutTheResource(t *testing.T) {
	t.Parallel()
	two := strings.Replace(template, `"Cluster": {`, `"Job": {"Type": "AWS::ECS::TaskDefinition"}, "Cluster": {`, 1)
	for _, tt := range []struct{ doc, resource, want string }{
		{`{"Resources": {}}`, "", `the template has no resource of type "AWS::ECS::TaskDefinition"`},
		{template, "Cluster", "choose a resource of the template that is a task definition: Web"},
		{two, "", "choose a resource of the template that is a task definition: Job, Web"},
		{"Resources:\n  Web: !Ref x\n", "", `the template has no resource of type "AWS::ECS::TaskDefinition"`},
		{`{"Cpu": []}`, "", "invalid task definition:\n  $.Cpu: must be a string, but is a list (type)"},
		{two, "Job", "invalid task definition:\n  $.Resources.Job.Properties: must be an object, but is null (type)"},
	} {
		if _, err := ParseTemplate([]byte(tt.doc), tt.resource); err == nil || err.Error() != tt.want {
			t.Errorf("%.60s: %v, want %s", tt.doc, err, tt.want)
		}
	}
}

func TestValuesThatTerraformComputesAreUnknown(t *testing.T) {
	t.Parallel()
	d, err := ParseContainers(
		[]byte(`[{"name": "${app}", "image": "${image}", "portMappings": [{"containerPort": 80, "name": "${app}"}],
		"environmentFiles": [{"type": "s3", "value": "${file}"}], "secrets": [{"name": "A", "valueFrom": "${a}"}],
		"logConfiguration": {"logDriver": "${driver}"}, "firelensConfiguration": {"type": "${type}", "options": {"config-file-type": "s3", "config-file-value": "${arn}"}},
		"dependsOn": [{"containerName": "${app}-init", "condition": "SUCCESS"}]}, {"name": "${app}-init", "image": "init", "essential": false, "startTimeout": 1}]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"timeout-low $[1].startTimeout"}, codes(d.Validate())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestBareContainerListIsCheckedWithoutATask(t *testing.T) {
	t.Parallel()
	d, err := ParseContainers([]byte(`[{"name": "app", "image": "${registry}/web:1", "portMappings": [{"containerPort": 80, "hostPort": 81, "name": "${name}"}], "healthCheck": {"command": ["CMD"]},
		"mountPoints": [{"sourceVolume": "data"}], "secrets": [{"name": "A", "valueFrom": "${a}"}]}, {"name": "app"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"container-name-unique $[1].name", "container-image-blank $[1].image",
		"health-check-command $[0].healthCheck.command"}
	if diff := cmp.Diff(want, codes(d.Validate())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// An unknown value never makes a violation: each value of each definition is
// replaced by one in turn, and what is found then was found before.
func TestUnknownValuesBreakNoRule(t *testing.T) {
	t.Parallel()
	for i, r := range append(slices.Concat(awsRejections, ownRejections), rejection{name: "web", base: webTask},
		rejection{name: "host", base: hostTask}) {
		if r.code == "document-size" {
			continue // too long to be tried a hundred times
		}
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			root := templated(parse(t, changed(t, r.base, r.changes...)).Task)
			before := templateCodes(t, root)
			eachValue(root, func(value *Node) {
				was := *value
				*value = Node{members: []member{{"Ref", &Node{scalar: `"X"`}}}}
				for _, v := range templateCodes(t, root) {
					if !slices.Contains(before, v) {
						t.Errorf("without %s: %s", was.JSON(), v)
					}
				}
				*value = was
			})
		})
	}
}

func templateCodes(t *testing.T, root *Node) []string {
	t.Helper()
	d, err := ParseTemplate(root.JSON(), "")
	if err != nil {
		t.Fatal(err)
	}
	return codes(d.Validate())
}

// eachValue visits all that a value consists of.
func eachValue(n *Node, visit func(*Node)) {
	for _, m := range n.members {
		visit(m.value)
		eachValue(m.value, visit)
	}
	for _, item := range n.items {
		visit(item)
		eachValue(item, visit)
	}
}

// templated spells the keys as CloudFormation does.
func templated(n *Node) *Node {
	out := *n
	out.members, out.items = nil, nil
	for _, m := range n.members {
		value := m.value
		if !slices.Contains([]string{"options", "dockerLabels", "driverOpts", "labels"}, m.key) {
			value = templated(value)
		}
		out.Set(templateKey(m.key), value)
	}
	for _, item := range n.items {
		out.Append(templated(item))
	}
	return &out
}

// What a template breaks is what the same definition breaks in the ECS format,
// except for the name, which CloudFormation makes, and empty lists of tags, which it leaves out.
func TestTemplatesBreakTheSameRules(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(awsRejections, ownRejections) {
		d := parse(t, changed(t, r.base, r.changes...))
		want := []string{r.code}
		if r.code == "family-blank" || r.code == "tags-empty" {
			want = nil
		}
		var got []string
		for _, v := range templateCodes(t, templated(d.Task)) {
			code, _, _ := strings.Cut(v, " ")
			got = append(got, code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", r.name, got, want)
		}
	}
}

func TestNextFargateSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want    Size
		windows bool
		next    Size
		ok      bool
	}{
		{Size{256, 512}, false, Size{256, 512}, true},
		{Size{1, 1}, false, Size{256, 512}, true},
		{Size{256, 513}, false, Size{256, 1024}, true},
		{Size{256, 2049}, false, Size{512, 3072}, true},
		{Size{512, 512}, false, Size{512, 1024}, true},
		{Size{1024, 1024}, false, Size{1024, 2048}, true},
		{Size{300, 8193}, false, Size{2048, 9216}, true},
		{Size{8192, 17000}, false, Size{8192, 20480}, true},
		{Size{16384, 122880}, false, Size{16384, 122880}, true},
		{Size{16384, 122881}, false, Size{}, false},
		{Size{20000, 1}, false, Size{}, false},
		{Size{512, 2048}, true, Size{1024, 2048}, true},
		{Size{4097, 8192}, true, Size{}, false},
	} {
		if next, ok := NextFargateSize(tt.want, tt.windows); next != tt.next || ok != tt.ok {
			t.Errorf("%v, Windows %t: %v, %t", tt.want, tt.windows, next, ok)
		}
	}
	if linux, windows := len(fargateSizes(false)), len(fargateSizes(true)); linux != 74 || windows != 43 {
		t.Errorf("%d sizes on Linux, %d on Windows", linux, windows)
	}
}

// A value of the definition's types has the JSON form that encoding/json gives it.
func TestNodeOfATypeIsItsJSON(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{webTask, hostTask, `{"registeredAt": 1.5, "deregisteredAt": "x", ` +
		`"containerDefinitions": [{"dockerLabels": {"b": "<", "a": "é"}, "restartPolicy": {}, "ulimits": [{}]}]}`} {
		d, err := Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d.Definition); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), string(NewNode(d.Definition).indented())); diff != "" {
			t.Errorf("JSON (-want +got):\n%s", diff)
		}
	}
}
