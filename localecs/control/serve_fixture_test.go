package control_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestMain(m *testing.M) {
	host.Dispatch(runtime.Role())
	if inside() {
		os.Exit(insideProgram())
	}
	os.Exit(testkit.Main(m))
}

const (
	account = "123456789012"
	roleARN = "arn:aws:iam::123456789012:role/shop"
)

// serveFixture is a served cluster with one image that has a shell.
type serveFixture struct {
	*control.APIServer
	t       *testing.T
	dir     string
	exports map[string]string

	mu       sync.Mutex
	events   []string
	warnings bytes.Buffer // of the simulator
}

func newServeFixture(t *testing.T) *serveFixture {
	t.Helper()
	return newServeFixtureIn(t, "us-east-1")
}

func newServeFixtureIn(t *testing.T, region string) *serveFixture {
	t.Helper()
	w := &serveFixture{t: t, dir: t.TempDir(), exports: map[string]string{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.APIServer, err = control.Open(control.APIOptions{
		Cluster: cluster.Options{
			Name: "default", Region: region, Account: account, Subnet: "10.42.0.0/24", Dir: w.dir,
			Images: map[string]runtime.Image{"shell": {Name: "shell", Programs: map[string]string{
				"/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep", "/bin/env": "/usr/bin/env",
			}}, "inside": {Name: "inside", Programs: map[string]string{"/bin/sh": "/bin/sh", "/bin/inside": self}}},
			Roles: []iam.Role{{Name: "shop", Account: account},
				{Name: "shop", Account: account, Partition: "aws-us-gov"},
				{Name: "lister", Account: account, Actions: []string{"ecs:ListTasks", "ecs:Describe*"}}},
			Log: hclog.NewNullLogger(),
		},
		Listener: listener, Throttle: true, Log: hclog.New(&hclog.LoggerOptions{Output: &w.warnings, Mutex: &w.mu}),
		Observe: func(task shapes.Task, _ time.Time) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, idOf(task.TaskARN)+" "+task.LastStatus+"/"+task.DesiredStatus)
		},
	})
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range w.Exports() {
		name, value, _ := strings.Cut(v, "=")
		w.exports[name] = value
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func idOf(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// call calls an operation as the exports make a client do, and decodes what it
// answers.
func (w *serveFixture) call(operation string, in, out any) error {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.exports["AWS_ENDPOINT_URL_ECS"],
		bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{
		AccessKeyID: w.exports["AWS_ACCESS_KEY_ID"], SecretAccessKey: w.exports["AWS_SECRET_ACCESS_KEY"],
	}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, req, hex.EncodeToString(sum[:]), "ecs",
		w.exports["AWS_REGION"], time.Now()); err != nil {
		w.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(string(text))
	}
	return json.Unmarshal(text, out)
}

// register registers a definition of one container, app, that runs a script. A
// TERM that comes before the script has a trap is ignored: that takes 2 s.
func (w *serveFixture) register(family, image, script string) {
	w.t.Helper()
	w.registerFor(2, family, image, script)
}

// registerFor calls register with a time to stop, in seconds.
func (w *serveFixture) registerFor(seconds int, family, image, script string) {
	w.t.Helper()
	var out shapes.Empty
	if err := w.call("RegisterTaskDefinition", map[string]any{
		"family": family, "networkMode": "awsvpc", "requiresCompatibilities": []string{"FARGATE"}, "cpu": "256",
		"memory": "512",
		"containerDefinitions": []any{map[string]any{"name": "app", "image": image, "stopTimeout": seconds,
			"entryPoint": []string{"/bin/sh", "-c"}, "command": []string{script}}},
	}, &out); err != nil {
		w.t.Fatal(err)
	}
}

// run starts one task.
func (w *serveFixture) run(in shapes.RunTaskInput) shapes.Task {
	w.t.Helper()
	in.NetworkConfiguration = &shapes.NetworkConfiguration{
		AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
	}
	var out shapes.TasksOutput
	err := w.call("RunTask", in, &out)
	if err != nil || len(out.Tasks) != 1 {
		w.t.Fatalf("%+v, %v", out, err)
	}
	if out.Tasks[0].LastStatus != shapes.Provisioning {
		w.t.Fatalf("%+v, %v", out, err)
	}
	return out.Tasks[0]
}

// await waits until the task has a last status.
func (w *serveFixture) await(cluster, arn, status string) (task shapes.Task) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the task is %+v", task)
		}
	}()
	tick := time.NewTicker(100 * time.Millisecond) // the API throttles
	defer tick.Stop()
	testkit.Eventually(w.t, "task is "+status, func() bool {
		<-tick.C
		var out shapes.TasksOutput
		if err := w.call("DescribeTasks", shapes.DescribeTasksInput{Cluster: cluster, Tasks: []string{arn}},
			&out); err != nil || len(out.Tasks) != 1 {
			w.t.Fatalf("%+v, %v", out, err)
		}
		task = out.Tasks[0]
		return task.LastStatus == status
	})
	return task
}

func (w *serveFixture) stop(cluster, arn string) {
	w.t.Helper()
	var out shapes.TaskOutput
	if err := w.call("StopTask", shapes.StopTaskInput{Cluster: cluster, Task: arn, Reason: "enough"},
		&out); err != nil {
		w.t.Fatal(err)
	}
}

// log returns what the task's container has written.
func (w *serveFixture) log(family, arn string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "logs", family+"-"+idOf(arn), "app.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
