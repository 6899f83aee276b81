package controlplane_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	prefix           = "arn:aws:ecs:us-east-1:123456789012:task-definition/"
	definitionCaller = "arn:aws:iam::123456789012:user/me"
)

var call = shapes.Call{Now: time.Date(2026, 3, 2, 17, 0, 0, 250e6, time.UTC), Principal: definitionCaller}

func newRegistry() *controlplane.Plane {
	return controlplane.New(controlplane.Options{Account: shapes.Account{Region: "us-east-1", ID: "123456789012"}})
}

func register(t *testing.T, g *controlplane.Plane, document string) shapes.TaskDefinitionOutput {
	t.Helper()
	out, err := g.RegisterTaskDefinition(call, shapes.RegisterTaskDefinitionInput{Document: []byte(document)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func simpleDefinition(family string) string {
	return `{"family": "` + family +
		`", "containerDefinitions": [{"name": "app", "image": "app:1", "memory": 64}], "tags": [{"key": "team", ` +
		`"value": "shop"}]}`
}

// TestRegistrationAnswersAsAWS compares the whole answer for a definition that
// uses most of what requires an attribute.
func TestRegistrationAnswersAsAWS(t *testing.T) {
	t.Parallel()
	out := register(t, newRegistry(), `{
		"family": "mesh", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "1 vCPU",
		"memory": "2GB",
		"taskRoleArn": "arn:aws:iam::123456789012:role/t", "executionRoleArn": "arn:aws:iam::123456789012:role/e",
		"pidMode": "task", "ephemeralStorage": {"sizeInGiB": 30}, "volumes": [{"name": "v"}],
		"revision": 7, "status": "INACTIVE", "unknown": 1,
		"tags": [{"key": "a", "value": "b"}],
		"containerDefinitions": [
			{"name": "init", "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/init:1", "essential": false,
			 "linuxParameters": {"initProcessEnabled": true, "capabilities": {"drop": ["ALL"]}}, "secrets": [
				{"name": "S", "valueFrom": "arn:aws:secretsmanager:us-east-1:123456789012:secret:s-AbCdEf"},
				{"name": "P", "valueFrom": "/p"}]},
			{"name": "app", "image": "app:1", "memoryReservation": 64, "portMappings": [{"containerPort": 80}],
			 "restartPolicy": {"enabled": true}, "healthCheck": {"command": ["CMD", "x"]},
			 "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-region": "us-east-1",
			"awslogs-group": "g", "awslogs-stream-prefix": "p"}},
			 "dependsOn": [{"containerName": "init", "condition": "SUCCESS"}], "mountPoints": [{"sourceVolume": "v",
			"containerPath": "/v"}]}
		]}`)
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "registered.json", append(text, '\n'))
}

func TestCompatibilities(t *testing.T) {
	t.Parallel()
	g := newRegistry()
	for document, want := range map[string][]string{
		simpleDefinition("bridge"): {"EC2"},
		`{"family": "both", "networkMode": "awsvpc", "cpu": "256", "memory": "512", "containerDefinitions": ` +
			`[{"name": "a", "image": "a"}]}`: {"EC2", "FARGATE"},
	} {
		if got := register(t, g, document).TaskDefinition.Compatibilities; !slices.Equal(got, want) {
			t.Errorf("%s: %q", document, got)
		}
	}
}

func TestRegistrationRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ document, want string }{
		{`{"family": "a", "containerDefinitions": []}`, "ClientException: Container list " +
			"cannot be empty."},
		{`{"family": "a", "containerDefinitions": [{"name": "b", "memory": 8}]}`, "ClientException: Container.image " +
			"should not be null or empty."},
		{`{"family": "a", "containerDefinitions": [{"image": "b", "memory": 8}, {"memory": 8, "name": "c", "image": ` +
			`"d", "ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]}]}`,
			"ClientException: Container.name should not be null or empty.; Soft limit exceeds hard limit for ulimit " +
				"nofile"},
		{`{"family": "a", "taskRoleArn": "", "containerDefinitions": [{"name": "b", "image": "b", "memory": 8, ` +
			`"volumesFrom": [{"sourceContainer": "c"}]}]}`, "ClientException: Role is not valid; Invalid " +
			"'volumesFrom' setting. Unknown container: 'c'."},
		{`{"family": 1}`, "SerializationException: $.family: must be a string, but is the number 1"},
		{`[]`, "SerializationException: $: must be an object, but is a list; a list of containers goes " +
			"into {\"family\": ..., \"containerDefinitions\": [...]}"},
		{`{`, "SerializationException: line 1, column 2: unexpected end of JSON input: something is cut off, or a " +
			"bracket is not closed"},
		{`{"family": "a", "containerDefinitions": [{"name": "b", "image": "b", "memory": 8}], "tags": [{"key": ` +
			`"aws:a"}]}`, "ClientException: Tag keys can't start with 'aws:'."},
	} {
		g := newRegistry()
		_, err := g.RegisterTaskDefinition(call, shapes.RegisterTaskDefinitionInput{Document: []byte(c.document)})
		testkit.WantError[*shapes.Error](t, err, c.want)
		if list, err := g.ListTaskDefinitionFamilies(call, shapes.ListTaskDefinitionsInput{}); err != nil ||
			len(list.Families) != 0 {
			t.Errorf("a refused definition has made %q, %v", list.Families, err)
		}
	}
}

func TestRevisionIsRegisteredDescribedAndDeregistered(t *testing.T) {
	t.Parallel()
	g := newRegistry()
	for n := 1; n <= 3; n++ {
		got := register(t, g, simpleDefinition("web")).TaskDefinition
		testkit.Equal(t, "Revision", got.Revision, n)
		testkit.Equal(t, "TaskDefinitionARN", got.TaskDefinitionARN, fmt.Sprint(prefix, "web:", n))
		testkit.Equal(t, "Status", got.Status, "ACTIVE")
	}
	describe := func(ref string) shapes.TaskDefinition {
		t.Helper()
		out, err := g.DescribeTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: ref})
		if err != nil || out.Tags != nil {
			t.Fatalf("%+v, %v", out, err)
		}
		return out.TaskDefinition
	}
	out, err := g.DeregisterTaskDefinition(call,
		shapes.TaskDefinitionInput{TaskDefinition: prefix + "web:3"})
	if err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	testkit.Equal(t, "TaskDefinition.Status", out.TaskDefinition.Status, "INACTIVE")
	testkit.Equal(t, "TaskDefinition.DeregisteredAt", out.TaskDefinition.DeregisteredAt, 1772470800.25)
	if d := describe("web"); d.Revision != 2 {
		t.Errorf("the latest is %d", d.Revision)
	}
	if d := describe("web:3"); d.Status != "INACTIVE" {
		t.Errorf("%+v", d)
	}
	deleted, err := g.DeleteTaskDefinitions(call,
		shapes.DeleteTaskDefinitionsInput{TaskDefinitions: []string{"web:3", "web:1", "web:9", "web"}})
	if err != nil || len(deleted.TaskDefinitions) != 1 {
		t.Fatalf("%+v, %v", deleted, err)
	}
	testkit.Equal(t, "TaskDefinitions[0].Status", deleted.TaskDefinitions[0].Status, "DELETE_IN_PROGRESS")
	const unknown = "The specified task definition does not exist. Specify a valid account, family, revision and try " +
		"again."
	wantFailures := []shapes.Failure{
		{ARN: "web:1", Reason: "The specified task definition is still in ACTIVE status. Please deregister the " +
			"target and try again."},
		{ARN: "web:9", Reason: unknown}, {ARN: "web", Reason: unknown},
	}
	if d := cmp.Diff(wantFailures, deleted.Failures); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := register(t, g, simpleDefinition("web")).TaskDefinition.Revision; got != 4 {
		t.Errorf("the next revision is %d, want 4", got)
	}
}

func TestUnknownRevisions(t *testing.T) {
	t.Parallel()
	g := newRegistry()
	register(t, g, simpleDefinition("web"))
	for _, ref := range []string{"web:2", "api", prefix + "api:1"} {
		_, err := g.DescribeTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: ref})
		testkit.WantError[*shapes.Error](t, err, "ClientException: Unable to describe task definition.")
	}
	_, err := g.DeregisterTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: "web:2"})
	testkit.WantError[*shapes.Error](t, err, "ClientException: The specified task definition does not exist.")
	_, err = g.DeregisterTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: "web"})
	testkit.WantError[*shapes.Error](t, err, "ClientException: Revision is missing.")
	_, err = g.DeleteTaskDefinitions(call, shapes.DeleteTaskDefinitionsInput{TaskDefinitions: make([]string, 11)})
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: taskDefinitions can have at most 10 items.")
	_, err = g.RunTask(call, shapes.RunTaskInput{TaskDefinition: "nope", LaunchType: shapes.Fargate})
	testkit.WantError[*shapes.Error](t, err, "ClientException: TaskDefinition not found.")
}

func TestLists(t *testing.T) {
	t.Parallel()
	g := newRegistry()
	for range 12 {
		register(t, g, simpleDefinition("web"))
	}
	register(t, g, simpleDefinition("web-2"))
	register(t, g, simpleDefinition("api"))
	for _, ref := range []string{"api:1", "web:5"} {
		if _, err := g.DeregisterTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: ref}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(in shapes.ListTaskDefinitionsInput) string {
		t.Helper()
		var names []string
		for {
			out, err := g.ListTaskDefinitions(call, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range out.ARNs {
				names = append(names, strings.TrimPrefix(a, prefix))
			}
			if in.NextToken = out.NextToken; in.NextToken == "" {
				return strings.Join(names, " ")
			}
			names = append(names, "|")
		}
	}
	five := 5
	for want, in := range map[string]shapes.ListTaskDefinitionsInput{
		"web:1 web:2 web:3 web:4 web:6 | web:7 web:8 web:9 web:10 web:11 | web:12 web-2:1": {
			PageInput: shapes.PageInput{MaxResults: &five},
		},
		"web:12 web:11 web:10 web:9 web:8 | web:7 web:6 web:4 web:3 web:2 | web:1": {FamilyPrefix: "web",
			Sort: "DESC", PageInput: shapes.PageInput{MaxResults: &five}},
		"api:1 web:5": {Status: "INACTIVE"},
		"":            {Status: "DELETE_IN_PROGRESS"},
	} {
		if got := list(in); got != want {
			t.Errorf("%+v:\ngot  %s\nwant %s", in, got, want)
		}
	}
	for want, in := range map[string]shapes.ListTaskDefinitionsInput{
		"api web web-2": {}, "web web-2": {FamilyPrefix: "web", Status: "ALL"}, "web  web-2": {Status: "ACTIVE"},
		"api": {Status: "INACTIVE"},
	} {
		out, err := g.ListTaskDefinitionFamilies(call, in)
		if got := strings.Join(out.Families, " "); err != nil || got != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("%+v: %s, %v", in, got, err)
		}
	}
	_, err := g.ListTaskDefinitions(call, shapes.ListTaskDefinitionsInput{Sort: "UP"})
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: 1 validation error detected: Value 'UP' at 'sort' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [ASC, DESC]")
}

func TestDefinitionTags(t *testing.T) {
	t.Parallel()
	g := newRegistry()
	if out := register(t, g, simpleDefinition("web")); len(out.Tags) != 1 || len(out.TaskDefinition.Tags) != 0 {
		t.Errorf("%+v", out)
	}
	_, err := g.UntagResource(call, shapes.ResourceInput{ResourceARN: prefix + "web:1", TagKeys: []string{"team"}})
	out, describeErr := g.DescribeTaskDefinition(call,
		shapes.TaskDefinitionInput{TaskDefinition: "web", Include: []string{"TAGS"}})
	if err != nil {
		t.Fatalf("%v, %v, %+v", err, describeErr, out.Tags)
	}
	if describeErr != nil || out.Tags == nil {
		t.Errorf("%v, %v, %+v", err, describeErr, out.Tags)
	}
	testkit.Equal(t, "len(out.Tags)", len(out.Tags), 0)
	_, err = g.UntagResource(call, shapes.ResourceInput{ResourceARN: prefix + "web:2"})
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: The specified task-definition is not found. Specify a valid task-definition and "+
			"try again.")
	_, err = g.DescribeTaskDefinition(call,
		shapes.TaskDefinitionInput{TaskDefinition: "web", Include: []string{"tags"}})
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: 1 validation error detected: Value 'tags' at 'include' failed to satisfy "+
			"constraint: Member must satisfy enum value set: [TAGS]")
}
