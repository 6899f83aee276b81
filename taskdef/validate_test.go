package taskdef

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fargate writes a valid Fargate definition around containers; settings are
// further keys of the task and may repeat and so replace the given ones.
func fargate(containers string, settings ...string) string {
	keys := append([]string{
		`"family": "web"`, `"networkMode": "awsvpc"`, `"requiresCompatibilities": ["FARGATE"]`,
		`"cpu": "256"`, `"memory": "512"`,
		`"executionRoleArn": "arn:aws:iam::111122223333:role/execution"`,
		`"containerDefinitions": [` + containers + `]`,
	}, settings...)
	return "{" + strings.Join(keys, ", ") + "}"
}

// app writes a container with further keys.
func app(name string, keys ...string) string {
	return "{" + strings.Join(append([]string{`"name": "` + name + `"`, `"image": "img"`}, keys...), ", ") + "}"
}

func dependsOn(name, condition string) string {
	return fmt.Sprintf(`"dependsOn": [{"containerName": %q, "condition": %q}]`, name, condition)
}

const (
	nonEssential = `"essential": false`
	healthCheck  = `"healthCheck": {"command": ["CMD", "check"]}`
)

// violations parses and validates; each line is "code path: message".
func violations(t *testing.T, doc string) []string {
	t.Helper()
	d, warnings, err := Parse([]byte(doc))
	if err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	// The cases themselves replace keys by giving them again.
	warnings = slices.DeleteFunc(warnings, func(w Warning) bool { return strings.HasPrefix(w.Message, "key given twice") })
	if len(warnings) > 0 {
		t.Fatalf("warnings %v in %s", warnings, doc)
	}
	var got []string
	for _, v := range d.Validate() {
		got = append(got, fmt.Sprintf("%s %s: %s", v.Code, v.Path, v.Message))
	}
	return got
}

type validateCase struct {
	name string
	doc  string
	want []string
}

func validate(t *testing.T, cases []validateCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, violations(t, tt.doc)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScenario71Cycles(t *testing.T) {
	t.Parallel()
	validate(t, []validateCase{
		{"two", fargate(app("a", dependsOn("b", "START")) + "," + app("b", dependsOn("a", "START"))),
			[]string{"depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> b -> a"}},
		{"self", fargate(app("a", dependsOn("a", "START"))),
			[]string{"depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> a"}},
		{"behind a tail", fargate(app("t", dependsOn("a", "START")) + "," + app("a", dependsOn("b", "START")) + "," +
			app("b", dependsOn("c", "START")) + "," + app("c", dependsOn("a", "START"))),
			[]string{"depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> b -> c -> a"}},
		{"through volumesFrom", fargate(app("a", dependsOn("b", "START")) + "," + app("b", `"volumesFrom": [{"sourceContainer": "a"}]`)),
			[]string{"depends-on-cycle $.containerDefinitions: Container dependencies should not have a cycle: a -> b -> a"}},
		{"links", `{"family": "f", "containerDefinitions": [` +
			app("a", `"memory": 8`, `"links": ["b:alias"]`) + "," + app("b", `"memory": 8`, `"links": ["a"]`) + `]}`,
			[]string{"depends-on-cycle $.containerDefinitions: Container links should not have a cycle: a -> b -> a"}},
		{"diamond", fargate(app("a", dependsOn("b", "START")) + "," +
			app("b", `"dependsOn": [{"containerName": "c", "condition": "START"}, {"containerName": "d", "condition": "START"}]`) + "," +
			app("c", dependsOn("d", "START")) + "," + app("d")), nil},
	})
}

func TestScenario72UndeclaredDependency(t *testing.T) {
	t.Parallel()
	validate(t, []validateCase{
		{"dependsOn", fargate(app("a", dependsOn("x", "START"))),
			[]string{"depends-on-exists $.containerDefinitions[0].dependsOn: Cannot depend on container + 'x' because it does not exist"}},
		{"volumesFrom", fargate(app("a", `"volumesFrom": [{"sourceContainer": "x"}]`)),
			[]string{"depends-on-exists $.containerDefinitions[0].volumesFrom: Cannot depend on container + 'x' because it does not exist"}},
		{"condition", fargate(app("a", dependsOn("b", "READY")) + "," + app("b")),
			[]string{`depends-on-condition $.containerDefinitions[0].dependsOn[0].condition: "READY" is not one of ["START" "COMPLETE" "SUCCESS" "HEALTHY"].`}},
	})
}

func TestScenario73SuccessOnEssential(t *testing.T) {
	t.Parallel()
	const text = "depends-on-essential $.containerDefinitions[0].dependsOn[0]: " +
		"A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"
	for _, condition := range []string{"SUCCESS", "COMPLETE"} {
		validate(t, []validateCase{
			{condition + " essential", fargate(app("a", dependsOn("b", condition)) + "," + app("b", `"essential": true`)), []string{text}},
			{condition + " omitted", fargate(app("a", dependsOn("b", condition)) + "," + app("b")), []string{text}},
			{condition + " not essential", fargate(app("a", dependsOn("b", condition)) + "," + app("b", nonEssential)), nil},
		})
	}
}

func TestScenario74HealthyWithoutCheck(t *testing.T) {
	t.Parallel()
	text := []string{"depends-on-health-check $.containerDefinitions[0].dependsOn[0]: " +
		"A dependency container with HEALTHY condition must have health check configured"}
	validate(t, []validateCase{
		{"none", fargate(app("a", dependsOn("b", "HEALTHY")) + "," + app("b")), text},
		{"NONE", fargate(app("a", dependsOn("b", "HEALTHY")) + "," + app("b", `"healthCheck": {"command": ["NONE"]}`)), text},
		{"check", fargate(app("a", dependsOn("b", "HEALTHY")) + "," + app("b", healthCheck)), nil},
	})
}

func TestScenario75Containers(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 11 {
		many = append(many, app(fmt.Sprint("c", i)))
	}
	validate(t, []validateCase{
		{"no essential", fargate(app("a", nonEssential)),
			[]string{"essential-container $.containerDefinitions: At least one container must be essential."}},
		{"duplicate", fargate(app("a") + "," + app("b") + "," + app("a")),
			[]string{"container-name-unique $.containerDefinitions[2].name: Container name 'a' is already used by containerDefinitions[0]."}},
		{"eleven", fargate(strings.Join(many, ",")),
			[]string{"container-count $.containerDefinitions: Container list has 11 entries, at most 10 are allowed."}},
		{"ten", fargate(strings.Join(many[:10], ",")), nil},
		{"empty", fargate(""), []string{"container-count $.containerDefinitions: Container list cannot be empty."}},
		{"absent", `{"family": "f"}`, []string{"container-count $.containerDefinitions: Container list cannot be empty."}},
	})
}

func TestScenario76FargateSizes(t *testing.T) {
	t.Parallel()
	size := func(cpu, memory string) string {
		return strings.NewReplacer(`"cpu": "256"`, fmt.Sprintf(`"cpu": %q`, cpu),
			`"memory": "512"`, fmt.Sprintf(`"memory": %q`, memory)).Replace(fargate(app("a")))
	}
	validate(t, []validateCase{
		{"256/4096", size("256", "4096"), []string{"fargate-size $.memory: No Fargate configuration exists for given values: " +
			"256 CPU, 4096 memory. Valid memory for this CPU: 512 1024 2048."}},
		{"256/1536", size("256", "1536"), []string{"fargate-size $.memory: No Fargate configuration exists for given values: " +
			"256 CPU, 1536 memory. Valid memory for this CPU: 512 1024 2048."}},
		{"300/512", size("300", "512"), []string{"fargate-size $.cpu: No Fargate configuration exists for given values: " +
			"300 CPU, 512 memory. Valid CPU: 256, 512, 1024, 2048, 4096, 8192, 16384."}},
		{"256/2048", size("256", "2048"), nil},
		{"512/4096", size("512", "4096"), nil},
		{"4096/30720", size("4096", "30720"), nil},
		{"8192/61440", size("8192", "61440"), nil},
		{"16384/122880", size("16384", "122880"), nil},
		{"vCPU", size("1 vCPU", "2 GB"), nil},
		{"vcpu without blank", size(".5 vcpu", "1gb"), nil},
		{"nonsense", size("much", "1 TB"), []string{
			`task-size $.cpu: Invalid 'cpu' setting for task: "much" is neither CPU units nor vCPUs.`,
			`task-size $.memory: Invalid 'memory' setting for task: "1 TB" is neither MiB nor GB.`}},
		{"absent", size("", ""), []string{
			"fargate-size $.cpu: Fargate requires that 'cpu' be defined at the task level.",
			"fargate-size $.memory: Fargate requires that 'memory' be defined at the task level."}},
	})
}

func TestScenario77HostPort(t *testing.T) {
	t.Parallel()
	const text = "host-port $.containerDefinitions[0].portMappings[0].hostPort: " +
		"When networkMode=awsvpc, the host ports and container ports in port mappings must match."
	bridge := `{"family": "f", "containerDefinitions": [` + app("a", `"memory": 8`, `"portMappings": [{"containerPort": 80, "hostPort": 8080}]`) + `]}`
	validate(t, []validateCase{
		{"differs", fargate(app("a", `"portMappings": [{"containerPort": 80, "hostPort": 8080}]`)), []string{text}},
		{"zero", fargate(app("a", `"portMappings": [{"containerPort": 80, "hostPort": 0}]`)), []string{text}},
		{"omitted", fargate(app("a", `"portMappings": [{"containerPort": 80}]`)), nil},
		{"same", fargate(app("a", `"portMappings": [{"containerPort": 80, "hostPort": 80}]`)), nil},
		{"bridge", bridge, nil},
		{"range", fargate(app("a", `"portMappings": [{"containerPort": 70000, "protocol": "sctp"}]`)), []string{
			`port-mapping $.containerDefinitions[0].portMappings[0].protocol: "sctp" is not one of ["tcp" "udp"].`,
			"port-mapping $.containerDefinitions[0].portMappings[0]: Ports must be between 0 and 65535."}},
	})
}

func TestScenario78Timeouts(t *testing.T) {
	t.Parallel()
	at := "$.containerDefinitions[0]"
	validate(t, []validateCase{
		{"stop 1", fargate(app("a", `"stopTimeout": 1`)),
			[]string{"granular-timeout " + at + ".stopTimeout: Granular stop timeout on container 'a' must be at least 2 seconds."}},
		{"stop 121", fargate(app("a", `"stopTimeout": 121`)),
			[]string{"fargate-timeout " + at + ".stopTimeout: Tasks using the Fargate launch type must have a container stop timeout of less than 120 seconds."}},
		{"stop 2", fargate(app("a", `"stopTimeout": 2`)), nil},
		{"stop 120", fargate(app("a", `"stopTimeout": 120`)), nil},
		{"stop 121 on EC2", `{"family": "f", "containerDefinitions": [` + app("a", `"memory": 8`, `"stopTimeout": 121`) + `]}`, nil},
		{"start 1", fargate(app("a", `"startTimeout": 1`)),
			[]string{"granular-timeout " + at + ".startTimeout: Granular start timeout on container 'a' must be at least 2 seconds."}},
		{"start 121", fargate(app("a", `"startTimeout": 121`)),
			[]string{"fargate-timeout " + at + ".startTimeout: Tasks using the Fargate launch type must have a container start timeout of less than 120 seconds."}},
	})
}

func TestScenario79HealthRanges(t *testing.T) {
	t.Parallel()
	check := func(key string, value int) string {
		return fargate(app("a", fmt.Sprintf(`"healthCheck": {"command": ["CMD", "x"], %q: %d}`, key, value)))
	}
	text := func(key string, low, high int) []string {
		return []string{fmt.Sprintf("health-check $.containerDefinitions[0].healthCheck.%s: "+
			"Health check %s of container 'a' must be between %d and %d.", key, key, low, high)}
	}
	validate(t, []validateCase{
		{"interval 4", check("interval", 4), text("interval", 5, 300)},
		{"interval 301", check("interval", 301), text("interval", 5, 300)},
		{"timeout 1", check("timeout", 1), text("timeout", 2, 120)},
		{"timeout 121", check("timeout", 121), text("timeout", 2, 120)},
		{"timeout 60", check("timeout", 60), nil},
		{"timeout 61", check("timeout", 61), []string{"health-check-long-timeout $.containerDefinitions[0].healthCheck.timeout: " +
			"timeout 61: not every ECS version takes more than 60 seconds"}},
		{"retries 11", check("retries", 11), text("retries", 1, 10)},
		{"retries 0", check("retries", 0), text("retries", 1, 10)},
		{"startPeriod 301", check("startPeriod", 301), text("startPeriod", 0, 300)},
		{"bare argv", fargate(app("a", `"healthCheck": {"command": ["/consul/consul-ecs", "net-dial", "127.0.0.1:20000"], "interval": 5, "retries": 10, "timeout": 5}`)), nil},
		{"no command", fargate(app("a", `"healthCheck": {"interval": 5}`)),
			[]string{"health-check $.containerDefinitions[0].healthCheck.command: Health check of container 'a' must have a command."}},
	})
}

func TestScenario80FargateRefusals(t *testing.T) {
	t.Parallel()
	at := "$.containerDefinitions[0]"
	validate(t, []validateCase{
		{"volume", fargate(app("a", `"mountPoints": [{"sourceVolume": "x", "containerPath": "/x"}]`)),
			[]string{"mount-point-volume " + at + ".mountPoints[0].sourceVolume: Unknown volume 'x'."}},
		{"volume declared", fargate(app("a", `"mountPoints": [{"sourceVolume": "x", "containerPath": "/x"}]`), `"volumes": [{"name": "x"}]`), nil},
		{"secret", fargate(app("a", `"environment": [{"name": "X", "value": "1"}]`, `"secrets": [{"name": "X", "valueFrom": "p"}]`)),
			[]string{"secret-name " + at + ".secrets[0].name: The secret name must be unique and not shared with any new or existing environment variables set on the container, such as 'X'."}},
		{"privileged", fargate(app("a", `"privileged": true`)),
			[]string{"fargate-container-setting " + at + ".privileged: Fargate requires that the 'privileged' setting be 'false'"}},
		{"not privileged", fargate(app("a", `"privileged": false`)), nil},
		{"links", fargate(app("a", `"links": ["b"]`) + "," + app("b")),
			[]string{"awsvpc-setting " + at + ".links: Links are not supported when networkMode=awsvpc"}},
		{"pidMode host", fargate(app("a"), `"pidMode": "host"`),
			[]string{"fargate-task-setting $.pidMode: Tasks using the Fargate launch type do not support pidMode 'host'. The supported value for pidMode is 'task'."}},
		{"pidMode task", fargate(app("a"), `"pidMode": "task"`), nil},
	})
}

// Everything wrong comes at once, in the order of the table.
func TestValidateReportsEverything(t *testing.T) {
	t.Parallel()
	d, _, err := Parse([]byte(fargate(app("a", dependsOn("x", "START"), `"stopTimeout": 1`, `"privileged": true`), `"pidMode": "host"`)))
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, v := range d.Validate() {
		if v.Severity != Error {
			t.Errorf("%s has severity %s", v.Code, v.Severity)
		}
		codes = append(codes, v.Code)
	}
	want := []string{"granular-timeout", "depends-on-exists", "fargate-task-setting", "fargate-container-setting"}
	if !slices.Equal(codes, want) {
		t.Errorf("codes %q, want %q", codes, want)
	}
}

func TestRuleCodesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Code] || r.Check == nil || (r.Severity != Error && r.Severity != Warn) {
			t.Errorf("bad rule %+v", r)
		}
		seen[r.Code] = true
	}
}
