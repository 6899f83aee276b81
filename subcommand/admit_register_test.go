package subcommand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/taskdef"
)

// ecsAPI answers RegisterTaskDefinition, and has the last request and their number.
type ecsAPI struct {
	body   []byte
	header http.Header
	calls  atomic.Int32
}

// startECS starts the API and lets the SDK of this process use it.
func startECS(t *testing.T, status int) *ecsAPI {
	t.Helper()
	api := &ecsAPI{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.calls.Add(1)
		api.body, _ = io.ReadAll(r.Body) // the test compares it
		api.header = r.Header
		w.WriteHeader(status)
		fmt.Fprint(w,
			`{"taskDefinition": {"taskDefinitionArn": "arn:aws:ecs:us-east-1:123456789012:task-definition/app:1"}}`)
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
	doc := plainTask(withEntryPoint +
		`, "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r", "awslogs-stream-prefix": "p"}}`)
	doc = strings.Replace(doc, `"cpu"`, `"executionRoleArn": "arn:aws:iam::123456789012:role/x", "cpu"`, 1)
	code, stdout, stderr := callAdmit(doc, "-config", admitMesh(t), "-register", "-")
	if want := "registered arn:aws:ecs:us-east-1:123456789012:task-definition/app:1\n"; code != 0 ||
		!strings.Contains(stderr, want) || api.calls.Load() != 1 {
		t.Fatalf("exit %d, %d calls, stderr %q, want %q", code, api.calls.Load(), stderr, want)
	}
	if diff := cmp.Diff(stdout, string(api.body)); diff != "" {
		t.Errorf("registered (-printed +registered):\n%s", diff)
	}
	const target, content = "AmazonEC2ContainerServiceV20141113.RegisterTaskDefinition", "application/x-amz-json-1.1"
	if api.header.Get("X-Amz-Target") != target || api.header.Get("Content-Type") != content {
		t.Errorf("headers %v, want the target %s and %s", api.header, target, content)
	}
}

// The request is signed for the body that is sent.
func TestAdmitSignsWhatItRegisters(t *testing.T) {
	startECS(t, http.StatusOK)
	api := awstest.NewECS(t, awstest.ECSOptions{})
	t.Setenv("AWS_ENDPOINT_URL_ECS", api.URL())
	t.Setenv("AWS_REGION", api.Simulator.Region())
	t.Setenv("AWS_ACCESS_KEY_ID", api.Simulator.Key.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", api.Simulator.Key.Secret)
	code, _, stderr := callAdmit(plainTask(withEntryPoint), "-config", admitMesh(t), "-register", "-")
	if code != 0 || !strings.Contains(stderr, ":task-definition/app:1") {
		t.Errorf("exit %d, stderr %s", code, stderr)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	code, _, stderr = callAdmit(plainTask(withEntryPoint), "-config", admitMesh(t), "-register", "-")
	if code != 4 || !strings.Contains(stderr, "Signature") {
		t.Errorf("another key: exit %d, stderr %s", code, stderr)
	}
}

// ECS may have members that the SDK, or this program, does not know.
func TestAdmitRegistersMembersThatTheSDKLacks(t *testing.T) {
	api := startECS(t, http.StatusOK)
	doc := plainTask(withEntryPoint + `, "newOfContainers": {"a": [1.50, null]}`)
	doc = strings.Replace(doc, `"cpu"`, `"newOfTasks": "x", "cpu"`, 1)
	code, stdout, stderr := callAdmit(doc, "-config", admitMesh(t), "-register", "-")
	if code != 0 || api.calls.Load() != 1 {
		t.Fatalf("exit %d, %d calls, stderr %s", code, api.calls.Load(), stderr)
	}
	if diff := cmp.Diff(stdout, string(api.body)); diff != "" {
		t.Errorf("registered (-printed +registered):\n%s", diff)
	}
	for _, want := range []string{`"newOfTasks": "x"`, "1.50"} {
		if !strings.Contains(string(api.body), want) {
			t.Errorf("registered %s, want %s", api.body, want)
		}
	}
}

// Of a key that is given twice, readers may take the first or the last.
func TestAdmitRegistersEachKeyOnce(t *testing.T) {
	api := startECS(t, http.StatusOK)
	doc := `{"family": "app", "family": "other", "containerDefinitions": [{"name": "app", "image": "first", "image": "last", "memory": 64}]}`
	code, stdout, stderr := callAdmit(doc, "-register", "-")
	if code != 0 || string(api.body) != stdout {
		t.Fatalf("exit %d, registered %s, stderr %s", code, api.body, stderr)
	}
	if strings.Contains(stdout, "first") || strings.Count(stdout, "family") != 1 || !strings.Contains(stdout, "last") {
		t.Errorf("printed %s", stdout)
	}
}

// filled sets every member of a type.
func filled(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(filled(typ.Elem()).Addr())
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(typ.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(typ.Key()), filled(typ.Elem()))
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(typ.Field(i).Type))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		v.Set(reflect.ValueOf("x"))
	default:
		v.Set(reflect.ValueOf(7).Convert(typ))
	}
	return v
}

func TestEveryKnownMemberIsRegistered(t *testing.T) {
	api := startECS(t, http.StatusOK)
	text := taskdef.NewNode(filled(reflect.TypeFor[taskdef.TaskDefinition]()).Interface()).JSON()
	doc, err := taskdef.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	inv := &cli.Invocation{Stderr: io.Discard}
	if err := registerAdmitted(t.Context(), inv, doc); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(api.body, text) {
		t.Errorf("registered %s, want %s", api.body, text)
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
		{"sarif", []string{`"executionSuccessful": false`, `"ruleId": "ADM-WRAP"`,
			`"text": "register task definition app: `}},
	} {
		code, stdout, stderr := callAdmit(plainTask(""), "-config", mesh, "-register", "-output", c.output, "-")
		if code != 4 || !strings.Contains(stderr, "consul-ecs admit: register task definition app: ") ||
			int(api.calls.Load()) != i+1 {
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
