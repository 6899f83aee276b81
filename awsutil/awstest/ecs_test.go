package awstest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// call calls an operation with a Config, as AWS's SDK does, and decodes the
// answer.
func call(t *testing.T, c aws.Config, operation string, in, out any) (status int) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *c.BaseEndpoint, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	sum := sha256.Sum256(body)
	credentials, err := c.Credentials.Retrieve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := v4.NewSigner().SignHTTP(t.Context(), credentials, req, hex.EncodeToString(sum[:]), "ecs", c.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	res, err := c.HTTPClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return res.StatusCode
}

// describe describes tasks in words: last and desired status, stop code.
func describe(t *testing.T, c aws.Config, tasks ...string) (words []string) {
	t.Helper()
	var out shapes.TasksOutput
	if status := call(t, c, "DescribeTasks", shapes.DescribeTasksInput{Tasks: tasks, Include: []string{"TAGS"}},
		&out); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for _, task := range out.Tasks {
		words = append(words, fmt.Sprintf("%s/%s %s %d", task.LastStatus, task.DesiredStatus, task.StopCode,
			len(task.Tags)))
	}
	for _, f := range out.Failures {
		words = append(words, f.Reason)
	}
	return words
}

func TestTenThousandTasks(t *testing.T) {
	t.Parallel()
	e := awstest.NewECS(t, awstest.ECSOptions{})
	const n = 10_000
	begin := time.Now()
	tasks := e.Run(awstest.TaskGroup{Family: "web", Count: n, Tags: map[string]string{"team": "shop"}})
	t.Logf("%d tasks are RUNNING after %s", n, time.Since(begin))
	seen := map[string]bool{}
	var page shapes.ListTasksOutput
	for {
		token := page.NextToken
		page = shapes.ListTasksOutput{}
		call(t, e.Config(), "ListTasks", map[string]any{"family": "web", "nextToken": token}, &page)
		for i, words := range describe(t, e.Config(), page.TaskARNs...) {
			if words != "RUNNING/RUNNING  1" {
				t.Fatalf("%s is %s", page.TaskARNs[i], words)
			}
			seen[page.TaskARNs[i]] = true
		}
		if page.NextToken == "" {
			break
		}
	}
	if got, want := [...]int{len(tasks), len(seen), e.Calls("ListTasks")}, [...]int{n, n, n / 100}; got != want {
		t.Errorf("tasks, listed tasks and pages are %d, want %d", got, want)
	}
}

func TestTasksStop(t *testing.T) {
	t.Parallel()
	e := awstest.NewECS(t, awstest.ECSOptions{})
	tasks := e.Run(awstest.TaskGroup{Family: "web", Count: 3, Cluster: "", Tags: map[string]string{"a": "b"}})
	e.Stop(tasks[0])
	e.Stop(tasks[1][len(tasks[1])-32:]) // by ID
	c := e.Config()
	url := e.URL()
	c.BaseEndpoint, c.HTTPClient = &url, http.DefaultClient
	got := fmt.Sprint(describe(t, c, tasks...))
	if want := "[STOPPED/STOPPED UserInitiated 0 STOPPED/STOPPED UserInitiated 0 RUNNING/RUNNING  1]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStoppedTasksAreMissingAfterAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := awstest.NewECS(t, awstest.ECSOptions{})
		task := e.Run(awstest.TaskGroup{Family: "web", Count: 1})[0]
		e.Stop(task)
		c := e.Config()
		<-time.After(time.Hour - time.Second)
		before := fmt.Sprint(describe(t, c, task))
		<-time.After(time.Second)
		if after := fmt.Sprint(describe(t, c, task)); before != "[STOPPED/STOPPED UserInitiated 0]" ||
			after != "[MISSING]" {
			t.Errorf("got %s, then %s", before, after)
		}
	})
}

func TestCallsFail(t *testing.T) {
	t.Parallel()
	e := awstest.NewECS(t, awstest.ECSOptions{})
	e.Fail(func(c awstest.ECSCall) (int, string) {
		if c.Operation == "ListTasks" && c.Number == 2 {
			return http.StatusBadRequest, "ThrottlingException"
		}
		return 0, ""
	})
	var got []string
	for range 3 {
		var out struct {
			Type string `json:"__type"`
		}
		got = append(got, fmt.Sprint(call(t, e.Config(), "ListTasks", struct{}{}, &out), out.Type))
	}
	if want := "[200 400ThrottlingException 200]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
