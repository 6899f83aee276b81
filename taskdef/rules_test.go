package taskdef

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownRejections break the rules whose words are not known, or known in part.
var ownRejections = []rejection{
	{"family too long", webTask, []string{`family = "` + long(256) + `"`}, "family-length", "Family has 256 characters, at most 255 are allowed."},
	{"task memory", webTask, []string{`memory = "1 TB"`}, "task-memory", "Invalid 'memory' setting for task."},
	{"task memory empty", webTask, []string{`memory = ""`, app + ".memory = 64", second + ".memory = 64"}, "task-memory", "Invalid 'memory' setting for task."},
	{"task cpu of EC2 too low", hostTask, []string{`cpu = "127"`}, "task-cpu", "Invalid 'cpu' setting for task."},
	{"task cpu of EC2 too high", hostTask, []string{`cpu = "193 vCPU"`}, "task-cpu", "Invalid 'cpu' setting for task."},
	{"container's negative cpu", hostTask, []string{app + ".cpu = -1"}, "container-resources", "Invalid 'cpu' setting for container 'app'."},
	{"container's memory 5", hostTask, []string{app + ".memory = 5"}, "container-resources", "Invalid 'memory' setting for container 'app'."},
	{"container's negative reservation", hostTask, []string{app + ".memoryReservation = -64"}, "container-resources", "Invalid 'memoryReservation' setting for container 'app'."},
	{"container's reservation 0 alone", hostTask, []string{"-" + app + ".memory", app + ".memoryReservation = 0"}, "container-memory-missing", "Invalid setting for container 'app'. At least one of 'memory' or 'memoryReservation' must be specified."},
	{"task cpu", webTask, []string{`cpu = "1 core"`}, "task-cpu", "Invalid 'cpu' setting for task."},
	{"tags", webTask, []string{"tags = " + tags(51)}, "tag-count", "Task definition has 51 tags, at most 50 are allowed."},
	{"tag twice", webTask, []string{`tags = [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]`}, "tag-key-unique", "Multiple tags contain the same key."},
	{"tag of AWS", webTask, []string{`tags = [{"key": "AWS:k", "value": "v"}]`}, "tag-key-reserved", "Tag keys can't start with 'aws:'."},
	{"enumeration", hostTask, []string{`networkMode = "vpc"`}, "enum", "'vpc' is not one of [awsvpc, bridge, host, none]."},
	{"member missing", webTask, []string{"-" + app + ".secrets[0].valueFrom"}, "member-missing", "Missing required parameter 'valueFrom'."},
	{"member missing of a list's first element", hostTask, []string{app + `.extraHosts = [{"hostname": "db"}]`}, "member-missing", "Missing required parameter 'ipAddress'."},
	{"enumeration in a container", webTask, []string{app + `.portMappings[0].appProtocol = "tcp"`}, "enum", "'tcp' is not one of [http, http2, grpc]."},
	{"number out of range", hostTask, []string{app + `.resourceRequirements = [{"type": "GPU", "value": "1", "sharingStrategy": {"nvidiaMps": {"memory": 1, "maxComputePercent": 101}}}]`}, "member-range", "maxComputePercent must be between 1 and 100."},
	{"tag's key", webTask, []string{`tags = [{"key": "a*", "value": "v"}]`}, "tag-key", "Tag key 'a*' must be 1 to 128 letters, digits, blanks or characters of _.:/=+-@."},
	{"tag's blank key", webTask, []string{`tags = [{"key": "", "value": "v"}]`}, "tag-key", "Tag key '' must be 1 to 128 letters, digits, blanks or characters of _.:/=+-@."},
	{"tag's value", webTask, []string{`tags = [{"key": "k", "value": "` + long(257) + `"}]`}, "tag-value", "The value of tag 'k' must be at most 256 letters, digits, blanks or characters of _.:/=+-@."},
	{"volume without a name", webTask, []string{`volumes[1] = {}`}, "volume-name-length", "Volume name '' must have 1 to 255 characters."},
	{"volumes at launch", webTask, []string{"volumes[0].configuredAtLaunch = true", `volumes[1] = {"name": "v", "configuredAtLaunch": true}`, app + `.mountPoints[1] = {"sourceVolume": "v", "containerPath": "/v"}`}, "volume-launch-count", "Task definition has 2 volumes configured at launch, at most 1 is allowed."},
	{"efs access point without transit encryption", webTask, []string{efs + `{"fileSystemId": "fs-1", "authorizationConfig": {"accessPointId": "fsap-1"}}`}, "efs-access-point-encryption", "EFS IAM access point requires TransitEncryption to be enabled."},
	{"volume twice", webTask, []string{`volumes[1] = {"name": "data"}`}, "volume-name-unique", "Volume name 'data' is used twice."},
	{"container name's length", hostTask, []string{second + `.name = "` + long(256) + `"`}, "container-name-length", "Container.name should be 255 characters or less"},
	{"ulimit's name", hostTask, []string{app + `.ulimits[0].name = "files"`}, "ulimit-name", "'files' is not one of [core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack]."},
	{"ulimit unlimited soft", hostTask, []string{app + ".ulimits[0].softLimit = -1"}, "ulimit", "Soft limit exceeds hard limit for ulimit nofile"},
	{"ulimit beyond the kernel's", hostTask, []string{app + ".ulimits[0].hardLimit = 1048577"}, "ulimit-nofile", "ulimit nofile 1048577: the container cannot start with more than 1048576"},
	{"restart period 1801", webTask, []string{app + `.restartPolicy = {"enabled": true, "restartAttemptPeriod": 1801}`}, "restart-attempt-period", "The 'restartAttemptPeriod' setting for container 'app' must be between 60 and 1800."},
	{"restart codes", webTask, []string{app + `.restartPolicy = {"enabled": true, "ignoredExitCodes": ` + repeated(51, "1") + `}`}, "restart-exit-codes", "At most 50 exit codes are allowed."},
	{"start timeout 1", webTask, []string{app + ".startTimeout = 1"}, "timeout-low", "Granular start timeout on container 'app' must be at least 2 seconds."},
	{"stop timeout 1", webTask, []string{app + ".stopTimeout = 1"}, "timeout-low", "Granular stop timeout on container 'app' must be at least 2 seconds."},
	{"start timeout 121", webTask, []string{app + ".startTimeout = 121"}, "fargate-timeout", "Tasks using the Fargate launch type must have a container start timeout of less than 120 seconds."},
	{"stop timeout 121", webTask, []string{app + ".stopTimeout = 121"}, "fargate-timeout", "Tasks using the Fargate launch type must have a container stop timeout of less than 120 seconds."},
	{"health command missing", webTask, []string{"-" + app + ".healthCheck.command"}, "health-check-command", "Health check of container 'app' must have a command."},
	{"health command of one word", webTask, []string{app + `.healthCheck.command = ["CMD"]`}, "health-check-command", "Health check of container 'app' must have a command."},
	{"health arguments", webTask, []string{app + `.healthCheck.command[2] = "-v"`}, "health-check-arguments", "Health check of container 'app': what follows the first text after CMD-SHELL is ignored."},
	{"health interval 4", webTask, []string{app + ".healthCheck.interval = 4"}, "health-check-low", "Health check interval must be greater than or equal to the minimum allowed value 5 for container 'app'"},
	{"health timeout 1", webTask, []string{app + ".healthCheck.timeout = 1"}, "health-check-low", "Health check timeout must be greater than or equal to the minimum allowed value 2 for container 'app'"},
	{"health retries 0", webTask, []string{app + ".healthCheck.retries = 0"}, "health-check-low", "Health check retries must be greater than or equal to the minimum allowed value 1 for container 'app'"},
	{"environment file's name", webTask, []string{app + `.environmentFiles = [{"type": "s3", "value": "arn:aws:s3:::b/web"}]`}, "environment-file-name", "The name of an environment file must end in .env."},
	{"environment file of another service", webTask, []string{app + `.environmentFiles = [{"type": "s3", "value": "arn:aws:ssm:::x.env"}]`}, "environment-file-arn", "Invalid arn syntax."},
	{"environment file's type", webTask, []string{app + `.environmentFiles = [{"type": "file", "value": "arn:aws:s3:::b/web.env"}]`}, "environment-file-type", "Environment file type 'file' is not s3."},
	{"awslogs' multiline options", webTask, []string{logs + `.options.awslogs-datetime-format = "%Y"`, logs + `.options.awslogs-multiline-pattern = "^x"`}, "awslogs-multiline", "Log driver awslogs takes one of the options awslogs-datetime-format and awslogs-multiline-pattern."},
	{"secret options without a role", hostTask, []string{"-executionRoleArn", logs + ` = {"logDriver": "splunk", "secretOptions": [{"name": "splunk-token", "valueFrom": "token"}]}`}, "log-secret-role", "The execution role reads secretOptions, and the task has none."},
	{"efs port 65536", webTask, []string{efs + `{"fileSystemId": "fs-1", "transitEncryption": "ENABLED", "transitEncryptionPort": 65536}`}, "efs-port", "transitEncryptionPort is no port: the volume cannot be mounted."},
	{"gpu's value", hostTask, []string{app + `.resourceRequirements = [{"type": "GPU", "value": "one"}]`}, "gpu-value", "'one' is no number of GPUs."},
	{"log driver missing", hostTask, []string{logs + " = {}"}, "log-driver", "logDriver should not be null or empty."},
	{"dependency's condition", webTask, []string{app + `.dependsOn[0].condition = "READY"`}, "depends-on-condition", "'READY' is not one of [START, COMPLETE, SUCCESS, HEALTHY]."},
	{"dependency without condition", webTask, []string{"-" + app + ".dependsOn[0].condition"}, "depends-on-condition", "'null' is not one of [START, COMPLETE, SUCCESS, HEALTHY]."},
	{"dependency on essential completion", webTask, []string{second + ".essential = true", app + `.dependsOn[0].condition = "COMPLETE"`}, "depends-on-essential", "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"},
	{"dependency on disabled check", webTask, []string{app + `.dependsOn[0].condition = "HEALTHY"`, second + `.healthCheck = {"command": ["NONE"]}`}, "depends-on-health-check", "A dependency container with HEALTHY condition must have health check configured"},
	{"cycle", webTask, []string{second + `.dependsOn = [{"containerName": "app", "condition": "START"}]`}, "depends-on-cycle", "Container dependencies should not have a cycle"},
	{"cycle through volumesFrom", webTask, []string{second + `.volumesFrom = [{"sourceContainer": "app"}]`}, "depends-on-cycle", "Container dependencies should not have a cycle"},
	{"link to itself", hostTask, []string{app + `.links = ["app:me"]`}, "links-cycle", "Container links should not have a cycle"},
	{"link to nothing", hostTask, []string{app + `.links = ["nope:x"]`}, "links-exist", "Invalid 'links' setting. Unknown container: 'nope'."},
	{"protocol", webTask, []string{app + `.portMappings[0].protocol = "sctp"`}, "port-protocol", "Protocol 'sctp' is registered as tcp."},
	{"container port missing", webTask, []string{"-" + app + ".portMappings[0].containerPort"}, "port-container", "Invalid 'containerPort' setting for container 'app'."},
	{"container port", webTask, []string{app + `.portMappings[0].containerPort = 65536`}, "port-container", "Invalid 'containerPort' setting for container 'app'."},
	{"host port", hostTask, []string{app + `.portMappings = [{"containerPort": 80, "hostPort": 65536}]`}, "port-host", "Invalid 'hostPort' setting for container 'app'."},
	{"container port zero", webTask, []string{app + `.portMappings[0].containerPort = 0`}, "port-container", "Invalid 'containerPort' setting for container 'app'."},
	{"port range of one port", webTask, []string{app + `.portMappings = [{"containerPortRange": "8080-8080"}]`}, "port-range", "Invalid 'containerPortRange' setting for container 'app'."},
	{"port range in the host's network", hostTask, []string{`networkMode = "host"`, app + `.portMappings = [{"containerPortRange": "8080-8090"}]`}, "port-range-network-mode", "Container port ranges are not supported when networkMode=host."},
	{"port range overlap on a bridge", hostTask, []string{app + `.portMappings = [{"containerPortRange": "8080-8090"}, {"containerPort": 8090}]`}, "port-range-unique", "TCP container port '8090' is used multiple times in container 'app'."},
	{"port without a network", hostTask, []string{`networkMode = "none"`, app + `.portMappings = [{"containerPort": 80}]`}, "port-network-mode", "Port mappings are not supported when networkMode=none."},
	{"port name", webTask, []string{app + `.portMappings[0].name = "HTTP"`}, "port-name", "Port mapping name 'HTTP' must be 1 to 64 characters of [a-z0-9_-] and not begin with '-'."},
	{"port name with a hyphen first", webTask, []string{app + `.portMappings[0].name = "-http"`}, "port-name", "Port mapping name '-http' must be 1 to 64 characters of [a-z0-9_-] and not begin with '-'."},
	{"parameter's name", webTask, []string{app + `.secrets[0].valueFrom = "web:password::"`}, "secret-parameter", "The Systems Manager parameter name specified for secret PASSWORD is invalid. The parameter name can be up to 2048 characters and include the following letters and symbols: a-zA-Z0-9_.-"},
	{"placement constraints", hostTask, []string{"placementConstraints = " + repeated(11, `{"type": "memberOf", "expression": "true"}`)}, "placement-constraint-count", "Task definition has 11 placement constraints, at most 10 are allowed."},
	{"proxy without an egress port", webTask, []string{mesh, "proxyConfiguration.properties[1].name = \"AppPorts\""}, "proxy-egress-port", "Egress port not found"},
	{"swappiness", hostTask, []string{app + `.linuxParameters = {"swappiness": 101}`}, "swappiness", "swappiness must be between 0 and 100."},
	{"GPU without a value", hostTask, []string{app + `.resourceRequirements = [{"type": "GPU"}]`}, "resource-requirement-value", "Resource requirement of type GPU has no value."},
	{"credential specs", hostTask, []string{app + `.credentialSpecs = ["a", "b"]`}, "credential-specs", "At most 1 credential spec is allowed."},
	{"container port twice", webTask, []string{second + `.portMappings = [{"containerPort": 8080}]`}, "port-container-unique", "TCP container port '8080' is used multiple times in task when networkMode=awsvpc."},
	{"host network port twice", hostTask, []string{`networkMode = "host"`, app + `.portMappings = [{"containerPort": 80}, {"containerPort": 80}]`}, "port-host-unique", "TCP host port '80' is mapped multiple times in task."},
	{"dns search domains", webTask, []string{app + `.dnsSearchDomains = ["x"]`}, "awsvpc-dns-search-domains", "DNS search domains are not supported on container when networkMode=awsvpc."},
	{"fargate swappiness", webTask, []string{app + `.linuxParameters = {"swappiness": 1}`}, "fargate-container-setting", "Fargate compatible task definitions do not support swappiness"},
}

// containers adds containers from one index to the one before another.
func containers(from, to int) []string {
	var changes []string
	for i := from; i < to; i++ {
		changes = append(changes, fmt.Sprintf(`containerDefinitions[%d] = {"name": "c%d", "image": "c:1"}`, i, i))
	}
	return changes
}

func long(n int) string { return strings.Repeat("x", n) }

func repeated(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") + "]"
}

func tags(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"key": "k%d", "value": "v"}`, i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// changed returns a document with changes: "path = JSON", or "-path" to remove it.
func changed(t testing.TB, doc string, changes ...string) []byte {
	t.Helper()
	root, _ := readNode([]byte(doc))
	for _, c := range changes {
		path, text, set := strings.Cut(c, " = ")
		var value *Node
		if set {
			value, _ = readNode([]byte(text))
		}
		at := strings.FieldsFunc(strings.TrimPrefix(path, "-"), func(r rune) bool { return r == '.' || r == '[' || r == ']' })
		change(t, root, at, value)
	}
	return root.JSON()
}

// change sets what is at a path, or removes it when there is no value. It creates
// members, and elements at the end of a list.
func change(t testing.TB, n *Node, at []string, value *Node) {
	t.Helper()
	last := len(at) == 1
	var index int
	if _, err := fmt.Sscan(at[0], &index); err == nil {
		if index == len(n.items) {
			n.Append(&Node{})
		}
		if last {
			n.items[index] = value
		} else {
			change(t, n.items[index], at[1:], value)
		}
		return
	}
	switch {
	case last && value == nil:
		n.Delete(at[0])
	case last:
		n.Set(at[0], value)
	case n.Get(at[0]) == nil:
		t.Fatalf("no %s", at[0])
	default:
		change(t, n.Get(at[0]), at[1:], value)
	}
}

func parse(t testing.TB, doc []byte) *Document {
	t.Helper()
	d, err := Parse(doc)
	if err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	if len(d.Warnings) > 0 {
		t.Fatalf("warnings %v in %s", d.Warnings, doc)
	}
	return d
}

func TestEachRejectionBreaksOneRule(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(awsRejections, ownRejections) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			found := parse(t, changed(t, r.base, r.changes...)).Validate()
			if len(found) != 1 || found[0].Code+found[0].Message != r.code+r.message {
				t.Errorf("got %q\nwant one: %s: %s", found, r.code, r.message)
			}
		})
	}
}

// The definition without its own memory and the task's breaks two rules, and AWS
// gives the words of the first.
func TestContainerMemoryComesBeforeFargates(t *testing.T) {
	t.Parallel()
	found := parse(t, changed(t, webTask, "-memory")).Validate()
	var codes []string
	for _, v := range found {
		codes = append(codes, v.Code+" "+v.Path)
	}
	want := []string{
		"container-memory-missing $.containerDefinitions[0].memory", "container-memory-missing $.containerDefinitions[1].memory",
		"fargate-memory $.memory",
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestEveryRuleHasARejection(t *testing.T) {
	t.Parallel()
	if n := len(awsRejections); n < 95 {
		t.Errorf("%d definitions that AWS refuses, want 95", n)
	}
	broken := map[string]bool{}
	exact := map[string]bool{}
	for _, r := range awsRejections {
		broken[r.code], exact[r.code] = true, true
	}
	for _, r := range ownRejections {
		broken[r.code] = true
	}
	codes := map[string]bool{}
	for _, r := range Rules() {
		got := [4]bool{codes[r.Code], r.Fix == "" || r.Text == "", len(r.Members) == 0, (r.task == nil) == (r.each == nil)}
		if got != [4]bool{} {
			t.Errorf("code given before, no text, no members, not one function: %v of %+v", got, r)
		}
		codes[r.Code] = true
		if exact[r.Code] && r.Wording == Ours {
			t.Errorf("%s: AWS's words are known", r.Code)
		}
	}
	if diff := cmp.Diff(codes, broken); diff != "" {
		t.Errorf("rules that no definition breaks (-rules +broken):\n%s", diff)
	}
}

func TestViolationHasAWSWordsThenPathAndFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		changes []string
		want    string
	}{
		{[]string{`memory = "4096"`}, "No Fargate configuration exists for given values: 256 CPU, 4096 memory. See the Amazon ECS documentation for the valid values. " +
			"($.memory: the next valid size is cpu 512 with memory 4096; fargate-size)"},
		{[]string{`cpu = "300"`}, "No Fargate configuration exists for given values: 300 CPU, 512 memory. See the Amazon ECS documentation for the valid values. " +
			"($.cpu: the next valid size is cpu 512 with memory 1024; fargate-size)"},
		{[]string{`memory = "200000"`}, "No Fargate configuration exists for given values: 256 CPU, 200000 memory. See the Amazon ECS documentation for the valid values. " +
			"($.memory: the next valid size is cpu 16384 with memory 122880; fargate-size)"},
		{[]string{second + `.dependsOn = [{"containerName": "app", "condition": "START"}]`},
			"Container dependencies should not have a cycle ($.containerDefinitions: app -> init -> app: remove a dependency; depends-on-cycle)"},
		{[]string{app + `.dependsOn[0].condition = "HEALTHY"`},
			"A dependency container with HEALTHY condition must have health check configured " +
				"($.containerDefinitions[0].dependsOn[0]: give 'init' a healthCheck, or take START; depends-on-health-check)"},
		{[]string{firelens, second + `.firelensConfiguration = {"type": "fluentbit", "options": {"config-file-type": "s3", "config-file-value": "x"}}`},
			`Invalid arn syntax. ($.containerDefinitions[1].firelensConfiguration.options["config-file-value"]: ` +
				`write the ARN of an S3 object, or set config-file-type to file; firelens-config-file)`},
		{[]string{app + `.portMappings[0].containerPortRange = "8080-8090"`},
			"Invalid port mapping for container 'app', cannot specify both single port and port range. ($.containerDefinitions[0].portMappings[0]: remove one of them; port-and-range)"},
	} {
		found := parse(t, changed(t, webTask, tt.changes...)).Validate()
		if len(found) != 1 || found[0].String() != tt.want {
			t.Errorf("got %s\nwant %s", found, tt.want)
		}
	}
}
