package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

const webDefinition = `{"family": "web", "taskRoleArn": "arn:aws:iam::123456789012:role/apps/web", "networkMode": "awsvpc",
"containerDefinitions": [{"name": "app", "image": "hello", "memory": 64}]}`

const setting = `name: shop
cluster: shop
roles:
  apps/web: {tags: {team: shop}, actions: ["ecs:ListTasks"]}
`

// TestEndpoints runs the command outside of the project's containers: what it prints our metadata client, AWS's SDK and
// Consul.
func TestEndpoints(t *testing.T) {
	e := dockerengine.Start(t)
	consul, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consul.Stop)
	image := e.Image(t, "hello", map[string]string{"/hello": testkit.Programs(t) + "/hello"}, nil)
	network := e.Run(t, "network", "create", "--label", e.ID, e.ID+"-net")
	labels := []string{"run", "-d", "--label", "com.docker.compose.project=" + e.ID, "--label", "com.meshtask.localecs.task=web"}
	holder := e.Run(t, append(labels, "--network", network, image, "/hello", "api", "0.0.0.0:80")...)
	app := e.Run(t, append(labels, "--label", "com.meshtask.localecs.container=app", "--network=container:"+holder, image, "/hello", "api", "0.0.0.0:81")...)

	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	dir, tasks, aws := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	for name, text := range map[string]string{"web.json": webDefinition, "scenario.yaml": setting} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"DOCKER_HOST=" + e.Host, "CONSUL_HTTP_ADDR=http://" + consul.HTTPAddr, "CONSUL_HTTP_TOKEN=" + consul.Token}
	start := func(args ...string) *testkit.Process {
		return testkit.StartProcess(t, testkit.ProcessOptions{Env: env}, testkit.SelfArgs("localecs", append([]string{"endpoints"}, args...)...)...)
	}
	p := start("-project", e.ID, "-setting", dir, "-listen", tasks, "-aws-listen", aws, "-aws-url", "http://"+aws, "web="+filepath.Join(dir, "web.json"))
	testkit.Eventually(t, "it serves", func() bool {
		if !p.Running() {
			t.Fatal("it has ended")
		}
		return callCompose(nil, "endpoints", "-ready", "-listen", tasks).code == 0
	})
	task, err := awsutil.NewMetadataClient("http://" + tasks + "/v4/web.app").Task(t.Context())
	if err != nil || task.DesiredStatus != "RUNNING" || len(task.Containers) != 1 || task.Containers[0].KnownStatus != "RUNNING" {
		t.Fatalf("task %+v, error %v", task, err)
	}
	askAWS(t, tasks, aws, task.TaskARN)
	logins(t, consul, "http://"+aws, start)

	e.Run(t, "kill", "-s", "KILL", app)
	testkit.Eventually(t, "the task is to stop, and its network with it", func() bool {
		task, err := awsutil.NewMetadataClient("http://" + tasks + "/v4/web.app").Task(t.Context())
		return err == nil && task.DesiredStatus == "STOPPED" && e.Run(t, "inspect", "-f", "{{.State.Running}}", holder) == "false"
	})
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// askAWS calls STS and ECS by AWS's SDK with the task's credentials.
func askAWS(t *testing.T, tasks, endpoint, taskARN string) {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"), config.WithBaseEndpoint("http://"+endpoint),
		config.WithCredentialsProvider(endpointcreds.New("http://"+tasks+"/v2/credentials/web")))
	if err != nil {
		t.Fatal(err)
	}
	id := taskARN[strings.LastIndex(taskARN, "/")+1:]
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), nil)
	if want := "arn:aws:sts::123456789012:assumed-role/web/" + id; err != nil || aws.ToString(who.Arn) != want {
		t.Errorf("caller %+v, error %v, want %s", who, err, want)
	}
	list, err := ecs.NewFromConfig(cfg).ListTasks(t.Context(), &ecs.ListTasksInput{Cluster: aws.String("shop")})
	if err != nil || len(list.TaskArns) != 1 || list.TaskArns[0] != taskARN {
		t.Errorf("tasks %+v, error %v", list, err)
	}
	_, err = ecs.NewFromConfig(cfg).DescribeTasks(t.Context(), &ecs.DescribeTasksInput{Cluster: aws.String("shop"), Tasks: []string{id}})
	if err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
		t.Errorf("error %v of what the role may not do", err)
	}
}

// logins: a new auth method gets the addresses of STS and IAM, and -await waits for it and its binding rule.
func logins(t *testing.T, consul *testkit.Consul, url string, start func(...string) *testkit.Process) {
	t.Helper()
	c, err := api.NewClient(&api.Config{Address: consul.HTTPAddr, Token: consul.Token})
	if err != nil {
		t.Fatal(err)
	}
	if code := start("-await", "tasks", "-within", "10ms").Wait(); code != exit.CodeUnknown {
		t.Errorf("exit code %d without the method", code)
	}
	waiting := start("-await", "tasks", "-within", "1m")
	_, _, err = c.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: "tasks", Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs": []string{"arn:aws:iam::123456789012:role/apps/*"}, "EnableIAMEntityDetails": true,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the method knows where STS is", func() bool {
		m, _, err := c.ACL().AuthMethodRead("tasks", nil)
		return err == nil && m.Config["STSEndpoint"] == url && m.Config["IAMEndpoint"] == url
	})
	if !waiting.Running() {
		t.Error("it does not wait for the binding rule")
	}
	if _, _, err := c.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: "tasks", BindType: "service", BindName: "web"}, nil); err != nil {
		t.Fatal(err)
	}
	if code := waiting.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestPauseEndsWhenItIsAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pause().Run(ctx, &cli.Invocation{}) }()
	select {
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
