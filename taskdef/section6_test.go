package taskdef

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// section6 has a definition for every rule of RegisterTaskDefinition,
// in its order, and more than one where a line names several things. Each
// breaks that line only.
type section6 struct {
	line string
	doc  string
	// want is "code path: message", or its beginning.
	want string
}

const first = "$.containerDefinitions[0]"

// ec2 writes a definition that is not for Fargate.
func ec2(settings ...string) string {
	return "{" + strings.Join(append([]string{`"family": "f"`}, settings...), ", ") + "}"
}

func containers(c ...string) string { return `"containerDefinitions": [` + strings.Join(c, ", ") + `]` }

func structureLines() []section6 {
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, app(fmt.Sprint("c", i)))
	}
	files := strings.TrimSuffix(strings.Repeat(`{"type": "s3", "value": "arn:aws:s3:::b/x.env"}, `, 11), ", ")
	tags := strings.TrimSuffix(strings.Repeat(`{"key": "k", "value": "v"}, `, 51), ", ")
	long := strings.Repeat("x", 256)
	return []section6{
		{"family", fargate(app("a"), `"family": "a b"`), `family-name $.family: Family "a b" must be 1 to 255 letters`},
		{"family absent", fargate(app("a"), `"family": ""`), `family-name $.family: Family "" must be 1 to 255 letters`},
		{"family too long", fargate(app("a"), `"family": "`+long+`"`), `family-name $.family: Family "xxx`},
		{"container name", fargate(app("a.b")), `container-name ` + first + `.name: Container.name "a.b" must be 1 to 255 letters`},
		{"volume name", fargate(app("a"), `"volumes": [{"name": "a/b"}]`), `volume-name $.volumes[0].name: Volume name "a/b" must be 1 to 255 letters`},
		{"volume twice", fargate(app("a"), `"volumes": [{"name": "v"}, {"name": "v"}]`), "volume-name $.volumes[1].name: Volume name 'v' is used twice."},
		{"no container", fargate(""), "container-count $.containerDefinitions: Container list cannot be empty."},
		{"eleven containers", fargate(strings.Join(eleven, ", ")), "container-count $.containerDefinitions: Container list has 11 entries, at most 10 are allowed."},
		{"64 KiB", fargate(app("a", `"command": ["`+strings.Repeat("x", 70000)+`"]`)), "document-size $: Task definition has 7"},
		{"name required", fargate(`{"image": "i"}`), "container-name " + first + ".name: Container.name should not be null or empty."},
		{"image required", fargate(`{"name": "a"}`), "container-image " + first + ".image: Container.image should not be null or empty."},
		{"unique names", fargate(app("a") + ", " + app("a")), "container-name-unique $.containerDefinitions[1].name: Container name 'a' is already used by containerDefinitions[0]."},
		{"one essential", fargate(app("a", nonEssential)), "essential-container $.containerDefinitions: At least one container must be essential."},
		{"memory on EC2", ec2(containers(app("a"))), "container-memory " + first + ".memory: Invalid setting for container 'a'. At least one of 'memory' or 'memoryReservation' must be specified."},
		{"memory below reservation", ec2(containers(app("a", `"memory": 4`, `"memoryReservation": 5`))), "container-memory " + first + ".memory: Invalid setting for container 'a'. 'memory' must not be less"},
		{"memory above the task's", fargate(app("a", `"memory": 513`)), "container-memory " + first + ".memory: The 'memory' setting for container 'a' is greater than for the task"},
		{"sum of cpu", fargate(app("a", `"cpu": 257`)), "cpu-sum $.cpu: The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'."},
		{"unknown volume", fargate(app("a", `"mountPoints": [{"sourceVolume": "x", "containerPath": "/x"}]`)), "mount-point-volume " + first + ".mountPoints[0].sourceVolume: Unknown volume 'x'."},
		{"secret and variable", fargate(app("a", `"environment": [{"name": "X", "value": ""}]`, `"secrets": [{"name": "X", "valueFrom": "p"}]`)), "secret-name " + first + ".secrets[0].name: The secret name must be unique and not shared with any new or existing environment variables"},
		{"secret twice", fargate(app("a", `"secrets": [{"name": "X", "valueFrom": "p"}, {"name": "X", "valueFrom": "p"}]`)), "secret-name " + first + ".secrets[1].name: The secret name must be unique"},
		{"soft above hard", fargate(app("a", `"ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]`)), "ulimit " + first + ".ulimits[0]: Soft limit exceeds hard limit for ulimit nofile"},
		{"ulimit's name", fargate(app("a", `"ulimits": [{"name": "files", "softLimit": 1, "hardLimit": 1}]`)), "ulimit " + first + `.ulimits[0].name: "files" is not one of ["core" "cpu"`},
		{"restart period 59", fargate(app("a", `"restartPolicy": {"enabled": true, "restartAttemptPeriod": 59}`)), "restart-policy " + first + ".restartPolicy.restartAttemptPeriod: the 'restartAttemptPeriod' setting for container 'a' must be between 60 and 1800"},
		{"restart period 1801", fargate(app("a", `"restartPolicy": {"enabled": true, "restartAttemptPeriod": 1801}`)), "restart-policy " + first + ".restartPolicy.restartAttemptPeriod: "},
		{"restart codes", fargate(app("a", `"restartPolicy": {"enabled": true, "ignoredExitCodes": [0`+strings.Repeat(", 1", 50)+`]}`)), "restart-policy " + first + ".restartPolicy.ignoredExitCodes: At most 50 exit codes are allowed."},
		{"start timeout", fargate(app("a", `"startTimeout": 1`)), "granular-timeout " + first + ".startTimeout: Granular start timeout on container 'a' must be at least 2 seconds."},
		{"stop timeout", fargate(app("a", `"stopTimeout": 1`)), "granular-timeout " + first + ".stopTimeout: Granular stop timeout on container 'a' must be at least 2 seconds."},
		{"health range", fargate(app("a", `"healthCheck": {"command": ["x"], "interval": 301}`)), "health-check " + first + ".healthCheck.interval: Health check interval of container 'a' must be between 5 and 300."},
		{"health command", fargate(app("a", `"healthCheck": {"command": ["CMD-SHELL"]}`)), "health-check " + first + ".healthCheck.command: Health check of container 'a' must have a command after CMD-SHELL."},
		{"doubtful health timeout", fargate(app("a", `"healthCheck": {"command": ["x"], "timeout": 61}`)), "health-check-long-timeout " + first + ".healthCheck.timeout: timeout 61: not every ECS version"},
		{"eleven env files", fargate(app("a", `"environmentFiles": [`+files+`]`)), "environment-files " + first + ".environmentFiles: At most 10 environment files are allowed."},
		{"env file's type", fargate(app("a", `"environmentFiles": [{"type": "file", "value": "x"}]`)), "environment-files " + first + `.environmentFiles[0].type: "file" is not one of ["s3"].`},
		{"env file's end", fargate(app("a", `"environmentFiles": [{"type": "s3", "value": "arn:aws:s3:::b/x"}]`)), "environment-files " + first + ".environmentFiles[0].value: Environment file must be the ARN of an S3 object"},
		{"env file's ARN", fargate(app("a", `"environmentFiles": [{"type": "s3", "value": "arn:aws:ssm:::x.env"}]`)), "environment-files " + first + ".environmentFiles[0].value: Environment file must be the ARN of an S3 object"},
		{"tags", fargate(app("a"), `"tags": [`+tags+`]`), "tag-count $.tags: Task definition has 51 tags, at most 50 are allowed."},
		{"image's length", fargate(`{"name": "a", "image": "` + long + `"}`), "container-image " + first + ".image: Container.image has 256 characters, at most 255 are allowed."},
		{"awslogs options", fargate(app("a", `"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-region": "r"}}`)), "log-configuration " + first + ".logConfiguration.options: Log driver awslogs requires options: awslogs-region, awslogs-group"},
		{"log driver required", ec2(containers(app("a", `"memory": 8`, `"logConfiguration": {}`))), "log-configuration " + first + ".logConfiguration.logDriver: logDriver should not be null or empty."},
	}
}

func dependencyLines() []section6 {
	return []section6{
		{"exists", fargate(app("a", dependsOn("b", "START"))), "depends-on-exists " + first + ".dependsOn: Cannot depend on container + 'b' because it does not exist"},
		{"SUCCESS", fargate(app("a", dependsOn("b", "SUCCESS")) + ", " + app("b")), "depends-on-essential " + first + ".dependsOn[0]: A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"},
		{"COMPLETE", fargate(app("a", dependsOn("b", "COMPLETE")) + ", " + app("b")), "depends-on-essential " + first + ".dependsOn[0]: A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"},
		{"HEALTHY", fargate(app("a", dependsOn("b", "HEALTHY")) + ", " + app("b")), "depends-on-health-check " + first + ".dependsOn[0]: A dependency container with HEALTHY condition must have health check configured"},
		{"cycle", fargate(app("a", dependsOn("b", "START")) + ", " + app("b", dependsOn("a", "START"))), "depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> b -> a"},
		{"self edge", fargate(app("a", dependsOn("a", "START"))), "depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> a"},
		{"links", ec2(containers(app("a", `"memory": 8`, `"links": ["a"]`))), "depends-on-cycle $.containerDefinitions: Container links should not have a cycle: a -> a"},
		{"condition", fargate(app("a", dependsOn("b", "READY")) + ", " + app("b")), "depends-on-condition " + first + `.dependsOn[0].condition: "READY" is not one of ["START" "COMPLETE" "SUCCESS" "HEALTHY"].`},
	}
}

func fargateLines() []section6 {
	var lines []section6
	add := func(line, doc, want string) { lines = append(lines, section6{line, doc, want}) }
	setting := func(key, value, want string) { add(key, fargate(app("a", `"`+key+`": `+value)), want) }
	linux := func(key, value string) {
		add(key, fargate(app("a", `"linuxParameters": {"`+key+`": `+value+`}`)), "fargate-container-setting "+first+".linuxParameters."+key+": Fargate does not support the 'linuxParameters."+key+"' setting of containers")
	}
	add("awsvpc", fargate(app("a"), `"networkMode": "bridge"`), "fargate-network-mode $.networkMode: Fargate only supports network mode ‘awsvpc’.")
	add("cpu", fargate(app("a"), `"cpu": ""`), "fargate-size $.cpu: Fargate requires that 'cpu' be defined at the task level.")
	add("memory", fargate(app("a"), `"memory": ""`), "fargate-size $.memory: Fargate requires that 'memory' be defined at the task level.")
	add("pair", fargate(app("a"), `"memory": "4096"`), "fargate-size $.memory: No Fargate configuration exists for given values: 256 CPU, 4096 memory. ")
	add("cpu value", fargate(app("a"), `"cpu": "300"`), "fargate-size $.cpu: No Fargate configuration exists for given values: 300 CPU, 512 memory. ")
	add("spelling", fargate(app("a"), `"cpu": "1 core"`), `task-size $.cpu: Invalid 'cpu' setting for task: "1 core" is neither CPU units nor vCPUs.`)
	setting("portMappings", `[{"containerPort": 80, "hostPort": 81}]`, "host-port "+first+".portMappings[0].hostPort: When networkMode=awsvpc, the host ports and container ports in port mappings must match.")
	setting("portMappings", `[{"containerPort": 65536}]`, "port-mapping "+first+".portMappings[0]: Ports must be between 0 and 65535.")
	add("links", fargate(app("a", `"links": ["b"]`)+", "+app("b")), "awsvpc-setting "+first+".links: Links are not supported when networkMode=awsvpc")
	setting("dnsServers", `["1.1.1.1"]`, "awsvpc-setting "+first+".dnsServers: DNS servers are not supported when networkMode=awsvpc")
	setting("dnsSearchDomains", `["x"]`, "awsvpc-setting "+first+".dnsSearchDomains: DNS search domains are not supported when networkMode=awsvpc")
	setting("hostname", `"h"`, "awsvpc-setting "+first+".hostname: Hostname is not supported when networkMode=awsvpc")
	setting("extraHosts", `[{"hostname": "x", "ipAddress": "1.1.1.1"}]`, "awsvpc-setting "+first+".extraHosts: Extra hosts are not supported when networkMode=awsvpc")
	setting("privileged", "true", "fargate-container-setting "+first+".privileged: Fargate requires that the 'privileged' setting be 'false'")
	add("host.sourcePath", fargate(app("a"), `"volumes": [{"name": "v", "host": {"sourcePath": "/x"}}]`), "fargate-task-setting $.volumes[0].host.sourcePath: Fargate does not support")
	add("dockerVolumeConfiguration", fargate(app("a"), `"volumes": [{"name": "v", "dockerVolumeConfiguration": {}}]`), "fargate-task-setting $.volumes[0].dockerVolumeConfiguration: Fargate does not support")
	linux("devices", `[{"hostPath": "/dev/x"}]`)
	add("ipcMode", fargate(app("a"), `"ipcMode": "none"`), "fargate-task-setting $.ipcMode: Fargate does not support the 'ipcMode' setting")
	linux("sharedMemorySize", "64")
	linux("maxSwap", "1")
	linux("swappiness", "1")
	setting("resourceRequirements", `[{"type": "GPU", "value": "1"}]`, "fargate-container-setting "+first+".resourceRequirements: Fargate does not support")
	add("placementConstraints", fargate(app("a"), `"placementConstraints": [{"type": "memberOf"}]`), "fargate-task-setting $.placementConstraints: Fargate does not support")
	setting("dockerSecurityOptions", `["x"]`, "fargate-container-setting "+first+".dockerSecurityOptions: Fargate does not support")
	setting("disableNetworking", "true", "fargate-container-setting "+first+".disableNetworking: Fargate requires that the 'disableNetworking' setting be 'false'")
	add("pidMode", fargate(app("a"), `"pidMode": "host"`), "fargate-task-setting $.pidMode: Tasks using the Fargate launch type do not support pidMode 'host'. The supported value for pidMode is 'task'.")
	setting("stopTimeout", "121", "fargate-timeout "+first+".stopTimeout: Tasks using the Fargate launch type must have a container stop timeout of less than 120 seconds.")
	add("capabilities.add", fargate(app("a", `"linuxParameters": {"capabilities": {"add": ["NET_ADMIN"]}}`)), "fargate-container-setting "+first+".linuxParameters.capabilities.add: Fargate allows to add the capability SYS_PTRACE only, not NET_ADMIN.")
	add("20 GiB", fargate(app("a"), `"ephemeralStorage": {"sizeInGiB": 20}`), "fargate-task-setting $.ephemeralStorage.sizeInGiB: EphemeralStorage size should be at least 21")
	add("201 GiB", fargate(app("a"), `"ephemeralStorage": {"sizeInGiB": 201}`), "fargate-task-setting $.ephemeralStorage.sizeInGiB: EphemeralStorage size should be at most 200")
	noRole := `"executionRoleArn": ""`
	add("role for awslogs", fargate(app("a", `"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r"}}`), noRole), "fargate-execution-role "+first+".logConfiguration: Fargate requires task definition to have execution role ARN to support log driver awslogs.")
	add("role for ECR", fargate(`{"name": "a", "image": "111122223333.dkr.ecr.us-west-2.amazonaws.com/b:1"}`, noRole), "fargate-execution-role "+first+".image: Fargate requires task definition to have execution role ARN")
	add("role for secrets", fargate(app("a", `"secrets": [{"name": "S", "valueFrom": "p"}]`), noRole), "fargate-execution-role "+first+".secrets: Fargate requires task definition to have execution role ARN")
	setting("logConfiguration", `{"logDriver": "syslog"}`, "fargate-log-driver "+first+`.logConfiguration.logDriver: "syslog" is not one of ["awslogs" "splunk" "awsfirelens"].`)
	add("enumeration", ec2(containers(app("a", `"memory": 8`)), `"networkMode": "vpc"`), `enum $.networkMode: "vpc" is not one of ["awsvpc" "bridge" "host" "none"].`)
	add("compatibility", fargate(app("a"), `"requiresCompatibilities": ["FARGATE", "LAMBDA"]`), `enum $.requiresCompatibilities[1]: "LAMBDA" is not one of ["EC2" "FARGATE" "EXTERNAL" "MANAGED_INSTANCES"].`)
	return lines
}

func TestEveryLineOfSection6(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, lines := range [][]section6{structureLines(), dependencyLines(), fargateLines()} {
		for _, l := range lines {
			got := violations(t, l.doc)
			if len(got) != 1 || !strings.HasPrefix(got[0], l.want) {
				t.Errorf("%s: %.400q, want only %q", l.line, got, l.want)
			}
			code, _, _ := strings.Cut(l.want, " ")
			broken[code] = true
		}
	}
	codes := map[string]bool{}
	for _, r := range Rules() {
		codes[r.Code] = true
	}
	if diff := cmp.Diff(codes, broken); diff != "" {
		t.Errorf("rules that no line breaks (-rules +broken):\n%s", diff)
	}
}
