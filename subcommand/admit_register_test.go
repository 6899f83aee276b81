package subcommand

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ecsAPI answers RegisterTaskDefinition, and has the last request and their number.
type ecsAPI struct {
	body  []byte
	calls atomic.Int32
}

// startECS starts the API and lets the SDK of this process use it.
func startECS(t *testing.T, status int) *ecsAPI {
	t.Helper()
	api := &ecsAPI{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.calls.Add(1)
		api.body, _ = io.ReadAll(r.Body) // the test compares it
		w.WriteHeader(status)
		fmt.Fprint(w, `{"taskDefinition": {"taskDefinitionArn": "arn:aws:ecs:us-east-1:123456789012:task-definition/app:1"}}`)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_ECS": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	return api
}

func TestAdmitRegistersWhatItPrints(t *testing.T) {
	api := startECS(t, http.StatusOK)
	doc := plainTask(withEntryPoint + `, "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r", "awslogs-stream-prefix": "p"}}`)
	doc = strings.Replace(doc, `"cpu"`, `"executionRoleArn": "arn:aws:iam::123456789012:role/x", "cpu"`, 1)
	code, stdout, stderr := callAdmit(doc, "-config", admitMesh(t), "-register", "-")
	if want := "registered arn:aws:ecs:us-east-1:123456789012:task-definition/app:1\n"; code != 0 || !strings.Contains(stderr, want) || api.calls.Load() != 1 {
		t.Fatalf("exit %d, %d calls, stderr %q, want %q", code, api.calls.Load(), stderr, want)
	}
	var printed, registered any
	for _, err := range []error{json.Unmarshal([]byte(stdout), &printed), json.Unmarshal(api.body, &registered)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(printed, registered); diff != "" {
		t.Errorf("registered (-printed +registered):\n%s", diff)
	}
}

func TestAdmitCallsECSForAdmittedDefinitionsOnly(t *testing.T) {
	api := startECS(t, http.StatusOK)
	mesh := admitMesh(t)
	for name, c := range map[string]struct {
		doc   string
		words []string
		code  int
	}{
		"rejected":             {plainTask(withEntryPoint + `, "user": "5995"`), nil, 2},
		"warning, strict":      {plainTask(""), []string{"-strict"}, 2},
		"unknown to the SDK":   {plainTask(withEntryPoint + `, "x": 1`), nil, 2},
		"list of containers":   {`[]`, nil, 1},
		"template":             {`{"ContainerDefinitions": []}`, nil, 1},
		"not to be registered": {plainTask(withEntryPoint), []string{"-register=false"}, 0},
	} {
		code, _, stderr := callAdmit(c.doc, append(append([]string{"-config", mesh, "-register"}, c.words...), "-")...)
		if code != c.code || api.calls.Load() != 0 {
			t.Errorf("%s: exit %d, want %d, %d calls, stderr %s", name, code, c.code, api.calls.Load(), stderr)
		}
	}
}

func TestAdmitFailsWithECS(t *testing.T) {
	api := startECS(t, http.StatusServiceUnavailable)
	mesh := admitMesh(t)
	for i, c := range []struct {
		output string
		stdout []string
	}{
		{"definition", nil},
		{"report", []string{`"admitted": false`, `"code": "ADM-WRAP"`, `"error": "register task definition app: `}},
		{"sarif", []string{`"executionSuccessful": false`, `"ruleId": "ADM-WRAP"`, `"text": "register task definition app: `}},
	} {
		code, stdout, stderr := callAdmit(plainTask(""), "-config", mesh, "-register", "-output", c.output, "-")
		if code != 4 || !strings.Contains(stderr, "consul-ecs admit: register task definition app: ") || int(api.calls.Load()) != i+1 {
			t.Errorf("%s: exit %d, %d calls, stderr %q", c.output, code, api.calls.Load(), stderr)
		}
		if (c.stdout != nil) != json.Valid([]byte(stdout)) {
			t.Errorf("%s: stdout %q", c.output, stdout)
		}
		for _, want := range c.stdout {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: stdout %s, want %s", c.output, stdout, want)
			}
		}
	}
}
