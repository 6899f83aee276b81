package subcommand

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// ecsAPI is the ECS API of localecs, and how often it was called.
type ecsAPI struct {
	operations map[string]controlplane.Operation
	calls      atomic.Int32
}

// startECS starts the API and lets the SDK of this process use it.
func startECS(t *testing.T, wrap func(http.Handler) http.Handler) *ecsAPI {
	t.Helper()
	account := shapes.Account{Region: "us-east-1", ID: "123456789012"}
	store := iam.NewStore()
	key := store.PutUser(iam.User{Name: "me", Account: account.ID, Actions: []string{"ecs:*"}})
	api := &ecsAPI{operations: controlplane.Operations(controlplane.New(controlplane.Options{Account: account}))}
	handler := wrap(controlplane.NewHandler(controlplane.HandlerOptions{Store: store, Region: account.Region, Operations: api.operations, Log: hclog.NewNullLogger()}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.calls.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_ECS": server.URL, "AWS_REGION": account.Region, "AWS_ACCESS_KEY_ID": key.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY": key.Secret, "AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	return api
}

func unchanged(h http.Handler) http.Handler { return h }

func TestAdmitRegistersWhatItPrints(t *testing.T) {
	api := startECS(t, unchanged)
	doc := plainTask(withEntryPoint + `, "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r", "awslogs-stream-prefix": "p"}}`)
	doc = strings.Replace(doc, `"cpu"`, `"executionRoleArn": "arn:aws:iam::123456789012:role/x", "cpu"`, 1)
	code, stdout, stderr := callAdmit(doc, "-config", admitMesh(t), "-register", "-")
	if want := "registered arn:aws:ecs:us-east-1:123456789012:task-definition/app:1\n"; code != 0 || !strings.Contains(stderr, want) || api.calls.Load() != 1 {
		t.Fatalf("exit %d, %d calls, stderr %q, want %q", code, api.calls.Load(), stderr, want)
	}
	out, err := api.operations["DescribeTaskDefinition"](shapes.Call{Now: time.Now()}, []byte(`{"taskDefinition": "app:1", "include": ["TAGS"]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var printed, registered struct {
		ContainerDefinitions []struct {
			Name                string
			EntryPoint, Command []string
			DockerLabels        map[string]string
			Environment         []struct{ Name, Value string }
		}
	}
	var answer struct{ TaskDefinition json.RawMessage }
	for _, err := range []error{json.Unmarshal([]byte(stdout), &printed), json.Unmarshal(text, &answer), json.Unmarshal(answer.TaskDefinition, &registered)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(registered.ContainerDefinitions) != 4 {
		t.Fatalf("registered %s", text)
	}
	if diff := cmp.Diff(printed, registered, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("registered (-printed +registered):\n%s", diff)
	}
}

func TestAdmitCallsECSForAdmittedDefinitionsOnly(t *testing.T) {
	api := startECS(t, unchanged)
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
	api := startECS(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	})
	code, stdout, stderr := callAdmit(plainTask(withEntryPoint), "-config", admitMesh(t), "-register", "-")
	if code != 4 || stdout != "" || !strings.Contains(stderr, "register task definition app: ") || api.calls.Load() != 1 {
		t.Errorf("exit %d, %d calls, stdout %q, stderr %q", code, api.calls.Load(), stdout, stderr)
	}
}
