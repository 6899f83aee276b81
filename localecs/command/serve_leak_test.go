package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// runTasks calls localecs serve as a client: it runs tasks of the leaks scenario, and may wait until they are RUNNING.
func (s *simulator) runTasks(n int, running bool) error {
	if !s.await(order{Lines: 1}) {
		return errors.New("it has ended before its first line")
	}
	var exports map[string]string
	if err := json.Unmarshal([]byte(s.seen[0]), &exports); err != nil {
		return err
	}
	client := sdk.New(sdk.Options{
		Region: exports["AWS_REGION"], BaseEndpoint: aws.String(exports["AWS_ENDPOINT_URL_ECS"]),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: exports["AWS_ACCESS_KEY_ID"], SecretAccessKey: exports["AWS_SECRET_ACCESS_KEY"]}, nil
		}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	def, err := manyDefinition()
	if err != nil {
		return err
	}
	if _, err := client.RegisterTaskDefinition(ctx, def); err != nil {
		return err
	}
	out, err := client.RunTask(ctx, &sdk.RunTaskInput{
		TaskDefinition: def.Family, Count: aws.Int32(int32(n)),
		NetworkConfiguration: &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}}},
	})
	if err != nil || !running {
		return err
	}
	var arns []string
	for _, task := range out.Tasks {
		arns = append(arns, *task.TaskArn)
	}
	return sdk.NewTasksRunningWaiter(client, func(o *sdk.TasksRunningWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 200*time.Millisecond
	}).Wait(ctx, &sdk.DescribeTasksInput{Tasks: arns}, testkit.Patience)
}

// manyDefinition returns many.json of the leaks scenario: the SDK's names are those of
// the document, but for their first letters' case.
func manyDefinition() (*sdk.RegisterTaskDefinitionInput, error) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "localecs", "command", "testdata", "leaks", "many.json"))
	if err != nil {
		return nil, err
	}
	var def sdk.RegisterTaskDefinitionInput
	return &def, json.Unmarshal(text, &def)
}

// serves returns the command line of a serve with the images of the leaks scenario, and
// a separate scenario for the host's network.
func serves(t *testing.T, network string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scenario := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "leaks")
	if network == "host" {
		text, err := os.ReadFile(filepath.Join(scenario, "scenario.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("\ntasks:"), []byte("\nsubnet: 127.42.0.0/24\ntasks:"))
		scenario = filepath.Join(t.TempDir(), "scenario.yaml")
		if err := os.WriteFile(scenario, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"serve", "-json", "-network", network, "-dir", filepath.Join(stateDir, "serve"), "-images", scenario, "-var", "kid=" + self}
}

// sureProcesses is what a serve with one task has at least: its own three, and five containers.
const sureProcesses = 8

// However localecs serve ends, nothing of its tasks is left but logs; what kill -9
// leaves is for the next one on the directory.
func TestServeLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network string
		tasks   int
	}{{"awsvpc", 2}, {"host", 1}} { // tasks of a host share its ports
		for _, what := range []string{"SIGKILL", "SIGKILL group", "SIGINT group", "SIGTERM"} {
			t.Run(c.network+" "+what, func(t *testing.T) {
				t.Parallel()
				w := newMachine(t)
				orders := []order{{Lines: 1}} // all tasks are RUNNING
				for _, o := range pick(t, c.network+what) {
					if o.Processes > 0 {
						orders = append(orders, order{Processes: min(o.Processes, sureProcesses)})
					}
				}
				for _, o := range orders {
					o.Do, o.Args, o.Run = what, serves(t, c.network), c.tasks
					a := w.run(o)
					clean(t, o, a)
					if !a.Done {
						t.Errorf("%v: the moment did not come\n%s", o, a.story())
					}
					if killed := strings.HasPrefix(what, "SIGKILL"); !killed && (len(a.Kept) > 0 || a.Code != 0) || killed && a.Code != -1 {
						t.Errorf("%v: kept %q\n%s", o, a.Kept, a.story())
					}
				}
				if a := w.run(order{Args: serves(t, c.network), Lines: 1, Do: "SIGTERM"}); a.Code != 0 || len(a.Kept) > 0 {
					t.Errorf("the next one: kept %q\n%s", a.Kept, a.story())
				}
			})
		}
	}
}
