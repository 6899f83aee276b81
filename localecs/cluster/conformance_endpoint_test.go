package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// printing returns a container that prints its environment and stays.
func printing(name string) taskdef.Container {
	return taskdef.Container{Name: name, Image: "tools", EntryPoint: []string{"/bin/sh", "-c", "env; exec /bin/helper run 0s 0"}}
}

// environment returns what a container of printing printed.
func (s *taskFixture) environment(container string) map[string]string {
	s.t.Helper()
	s.await(container)
	variables := map[string]string{}
	for line := range strings.Lines(s.log(container)) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			variables[name] = value
		}
	}
	return variables
}

// object reads a JSON object, which an answer of 200 must be.
func (s *taskFixture) object(url string) map[string]any {
	s.t.Helper()
	code, body := s.request("GET", url, "")
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil || code != 200 {
		s.t.Fatalf("%s: %d, %v: %s", url, code, err, body)
	}
	return o
}

func TestConformanceEveryContainerHasItsOwnID(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, printing("a"), printing("b"), printing("c"))
	s.until("RUNNING", running)
	seen := map[string]bool{}
	var first map[string]any
	for _, name := range []string{"a", "b", "c"} {
		env := s.environment(name)
		base := env["ECS_CONTAINER_METADATA_URI_V4"]
		if seen[base] || base != s.base(name) {
			t.Errorf("%s: base %q", name, base)
		}
		seen[base] = true
		own := s.object(base)
		testkit.Equal(t, name+": Name", own["Name"], any(name))
		testkit.Equal(t, name+": base", base, "http://169.254.170.2/v4/"+fmt.Sprint(own["DockerId"]))
		testkit.Equal(t, name+": DockerName", own["DockerName"], any(name))
		task := s.object(base + "/task")
		delete(task, "ClockDrift")  // has the time
		delete(task, "KnownStatus") // becomes RUNNING a while after the task
		if first == nil {
			first = task
		} else if diff := cmp.Diff(first, task); diff != "" {
			t.Errorf("%s sees another task:\n%s", name, diff)
		}
		id := strings.TrimPrefix(base, "http://169.254.170.2/v4/")
		for variable, want := range map[string]string{
			"ECS_CONTAINER_METADATA_URI": "http://169.254.170.2/v3/" + id,
			"ECS_AGENT_URI":              "http://169.254.170.2/api/" + id,
			"AWS_EXECUTION_ENV":          "AWS_ECS_FARGATE",
		} {
			testkit.Equal(t, name+": "+variable, env[variable], want)
		}
	}
	if !strings.HasPrefix(first["TaskARN"].(string), "arn:aws:ecs:us-east-1:123456789012:task/test/") || first["Cluster"] != "arn:aws:ecs:us-east-1:123456789012:cluster/test" {
		t.Errorf("task %v", first)
	}
}

func TestConformanceUnknownEndpointIDIsNotFound(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "0s", "0"))
	for path, want := range map[string]string{
		"/v4/nobody":            `"V4 container metadata handler: unable to get container ID from request: unable to get docker ID from v3 endpoint ID: nobody"`,
		"/v4/nobody/task":       `"V4 task metadata handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nobody"`,
		"/v4/nobody/stats":      `"V4 container stats handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nobody"`,
		"/v4/nobody/task/stats": `"V4 task stats handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nobody"`,
	} {
		if code, body := s.request("GET", "http://169.254.170.2"+path, ""); code != 404 || body != want {
			t.Errorf("%s: %d: %s\nwant %s", path, code, body, want)
		}
	}
	if code, _ := s.request("GET", s.base("a")+"/", ""); code != 404 {
		t.Errorf("trailing slash: %d, want 404", code)
	}
}

func TestConformanceMetadataIsRateLimited(t *testing.T) {
	t.Parallel()
	// The sampler asks at a's path, so no one asks at b's.
	s := startTask(t, nil, helper("a", "run", "0s", "0"), helper("b", "run", "0s", "0"))
	transport := &http.Transport{DialContext: s.Dial}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var mu sync.Mutex
	codes := map[int]int{}
	ask := func() {
		answer, err := client.Get(s.base("b") + "/task")
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		h := answer.Header
		if answer.StatusCode == 429 {
			testkit.ErrorContains(t, err, "")
			testkit.Equal(t, "body of 429", string(body), "You have reached maximum request limit.")
			for name, want := range map[string]string{
				"Content-Type": "text/plain", "X-Rate-Limit-Limit": "40.00", "X-Rate-Limit-Duration": "1",
			} {
				testkit.Equal(t, name, h.Get(name), want)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		codes[answer.StatusCode]++
	}
	var all sync.WaitGroup
	began := time.Now()
	for range 8 { // the endpoint would close more connections than a busy machine serves
		all.Go(func() {
			for range 25 {
				ask()
			}
		})
	}
	all.Wait()
	most := 60 + int(40*time.Since(began).Seconds()) + 1
	if codes[200] < 60 || codes[200] > most {
		t.Errorf("answers %v, want 60 to %d of 200", codes, most)
	}
	testkit.Equal(t, "answers 200 and 429", codes[200]+codes[429], 200)
	if code, body := s.request("GET", s.base("b"), ""); code != 200 {
		t.Errorf("another path: %d %s", code, body)
	}
}

func TestConformanceCredentialsOfTheTaskRole(t *testing.T) {
	t.Parallel()
	s := startTask(t, withRole, printing("a"), printing("b"))
	path := s.environment("a")["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
	if !strings.HasPrefix(path, "/v2/credentials/") || path != s.environment("b")["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] {
		t.Fatalf("%s, and in b %s", path, s.environment("b")["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"])
	}
	o := s.object("http://169.254.170.2" + path)
	testkit.Equal(t, "number of members", len(o), 5)
	testkit.Equal(t, "RoleArn", o["RoleArn"], any(roleARN))
	for _, name := range []string{"AccessKeyId", "SecretAccessKey", "Token"} {
		if o[name] == "" {
			t.Errorf("no %s in %v", name, o)
		}
	}
	expiration, err := time.Parse("2006-01-02T15:04:05Z", fmt.Sprint(o["Expiration"]))
	if err != nil || time.Until(expiration) < time.Hour {
		t.Errorf("expiration %v, %v", o["Expiration"], err)
	}
	code, body := s.request("GET", "http://169.254.170.2/v2/credentials/nobody", "")
	if want := `{"code":"InvalidIdInRequest","message":"CredentialsV2Request: Credentials not found","HTTPErrorCode":400}`; code != 400 || body != want {
		t.Errorf("unknown ID: %d: %s, want %s", code, body, want)
	}
	without := startTask(t, nil, printing("a"))
	if value, ok := without.environment("a")["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]; ok {
		t.Errorf("a task without a role has %q", value)
	}
}

func TestConformanceRotationKeepsThePath(t *testing.T) {
	t.Parallel()
	s := startTask(t, withRole, helper("a", "run", "0s", "0"))
	before := s.object(s.credentialsURL())
	if err := s.cluster.Identities().Rotate(s.resources.credentials, time.Now()); err != nil {
		t.Fatal(err)
	}
	after := s.object(s.credentialsURL())
	testkit.Equal(t, "RoleArn", after["RoleArn"], any(roleARN))
	for _, name := range []string{"AccessKeyId", "Token"} {
		if after[name] == before[name] {
			t.Errorf("%s is still %v", name, after[name])
		}
	}
	// Expiration is in whole seconds.
	testkit.Eventually(t, "a later expiration", func() bool {
		if err := s.cluster.Identities().Rotate(s.resources.credentials, time.Now()); err != nil {
			t.Fatal(err)
		}
		// Not through the endpoint, which limits the rate.
		key, err := s.cluster.Identities().Current(s.resources.credentials)
		return err == nil && key.Expires.UTC().Format(time.RFC3339) > before["Expiration"].(string)
	})
	if now := s.object(s.credentialsURL()); now["Expiration"].(string) <= before["Expiration"].(string) {
		t.Errorf("expiration %v, before %v", now["Expiration"], before["Expiration"])
	}
	s.await("a").end().stopped()
	if err := s.cluster.Identities().Rotate(s.resources.credentials, time.Now()); err == nil {
		t.Error("the credentials of a task that is gone were rotated")
	}
}

func TestConformanceAgentVariablesWin(t *testing.T) {
	t.Parallel()
	a := printing("a")
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "ECS_CONTAINER_METADATA_URI_V4", "AWS_REGION", "AWS_DEFAULT_REGION", "HOSTNAME", "OTHER"} {
		a.Environment = append(a.Environment, taskdef.KeyValue{Name: name, Value: "mine"})
	}
	s := startTask(t, withRole, a)
	env := s.environment("a")
	// On Fargate the region too; only the EC2 agent leaves the user's.
	for name, want := range map[string]string{
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/" + s.resources.credentials, "ECS_CONTAINER_METADATA_URI_V4": s.base("a"),
		"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "OTHER": "mine",
	} {
		if env[name] != want {
			t.Errorf("%s=%s, want %s", name, env[name], want)
		}
	}
}

func TestConformanceTaskProtection(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	def := &taskdef.TaskDefinition{Family: "web", NetworkMode: "awsvpc", TaskRoleARN: roleARN, ContainerDefinitions: []taskdef.Container{helper("a", "run", "0s", "0")}}
	task, err := w.runFor("web", "web", def)
	if err != nil {
		t.Fatal(err)
	}
	state := func(s *taskFixture) string {
		return "http://169.254.170.2/api/" + s.resources.facts.Containers["a"].EndpointID + "/task-protection/v1/state"
	}
	s := &taskFixture{Task: task, t: t, fixture: w}
	arn := s.resources.facts.TaskARN
	for _, c := range []struct{ method, body, want string }{
		{"GET", "", `200 {"protection":{"ExpirationDate":null,"ProtectionEnabled":false,"TaskArn":"` + arn + `"}}`},
		{"PUT", `{"ProtectionEnabled":true,"Minutes":5}`, `400 {"error":{"Code":"InvalidParameterException","Message":"UpdateTaskProtection: failed to decode request"}}`},
		{"PUT", `{"ExpiresInMinutes":5}`, `400 {"error":{"Arn":"` + arn + `","Code":"InvalidParameterException","Message":"Invalid request: does not contain 'ProtectionEnabled' field"}}`},
	} {
		if code, body := s.request(c.method, state(s), c.body); fmt.Sprintf("%d %s", code, body) != c.want {
			t.Errorf("%s %s: %d %s\nwant %s", c.method, c.body, code, body, c.want)
		}
	}
	code, put := s.request("PUT", state(s), `{"ProtectionEnabled":true,"ExpiresInMinutes":60}`)
	_, got := s.request("GET", state(s), "")
	testkit.Equal(t, "status of PUT", code, 200)
	testkit.Equal(t, "answer to GET after PUT", got, put)
	if !strings.Contains(got, `"ProtectionEnabled":true`) || strings.Contains(got, `"ExpirationDate":null`) {
		t.Errorf("GET %s, want protection with an expiration", got)
	}
	// Only service tasks can be protected, and only with a task role.
	alone := w.startTask(t, withRole, helper("a", "run", "0s", "0"))
	code, body := alone.request("PUT", state(alone), `{"ProtectionEnabled":true}`)
	testkit.Equal(t, "status of a standalone task", code, 200)
	if !strings.Contains(body, `"failure"`) || !strings.Contains(body, "TASK_NOT_VALID") {
		t.Errorf("standalone: %s, want the failure TASK_NOT_VALID", body)
	}
	roleless := w.startTask(t, nil, helper("a", "run", "0s", "0"))
	if code, body := roleless.request("GET", state(roleless), ""); code != 403 || !strings.Contains(body, "AccessDeniedException") {
		t.Errorf("without a role: %d %s", code, body)
	}
}
