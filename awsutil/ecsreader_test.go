package awsutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

const cluster = "arn:aws:ecs:us-east-1:123456789012:cluster/shop"

func taskID(n int) string { return fmt.Sprintf("%032x", n) }

// wire answers ECS's protocol with what a test's function returns.
type wire struct {
	answer func(operation string, in map[string]any) (status int, out any)
	mu     sync.Mutex
	seen   []string
}

// ServeHTTP implements http.Handler.
func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in map[string]any
	json.Unmarshal(body, &in)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.seen = append(w.seen, operation+" "+string(body))
	w.mu.Unlock()
	status, out := w.answer(operation, in)
	rw.Header().Set("Content-Type", "application/x-amz-json-1.1")
	rw.WriteHeader(status)
	json.NewEncoder(rw).Encode(out)
}

func newReader(t *testing.T, o ECSReaderOptions, answer func(string, map[string]any) (int, any)) (*ECSReader, *wire) {
	t.Helper()
	w := &wire{answer: answer}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	if o.CallsPerSecond == 0 {
		o.CallsPerSecond = 1000
	}
	return NewECSReader(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
	}, o), w
}

func failure(code string) map[string]any {
	return map[string]any{"__type": "com.amazonaws.ecs#" + code, "message": "for a test"}
}

func list(t *testing.T, r *ECSReader, status string) ([]string, error) {
	t.Helper()
	var ids []string
	err := r.List(t.Context(), cluster, status, func(id string) { ids = append(ids, id) })
	return ids, err
}

func TestListFollowsAllPages(t *testing.T) {
	t.Parallel()
	r, w := newReader(t, ECSReaderOptions{}, func(_ string, in map[string]any) (int, any) {
		switch in["nextToken"] {
		case nil:
			return 200, map[string]any{"taskArns": []string{cluster + "/" + taskID(1)}, "nextToken": "2"}
		case "2": // an empty page is no end
			return 200, map[string]any{"taskArns": []string{}, "nextToken": "3"}
		default:
			return 200, map[string]any{"taskArns": []string{"arn:aws:ecs:us-east-1:123456789012:task/" + taskID(2)}}
		}
	})
	ids, err := list(t, r, TaskStopped)
	if err != nil || !slices.Equal(ids, []string{taskID(1), taskID(2)}) {
		t.Errorf("list = %v, %v", ids, err)
	}
	want := `ListTasks {"cluster":"` + cluster + `","desiredStatus":"STOPPED","maxResults":100}`
	if len(w.seen) != 3 || w.seen[0] != want {
		t.Errorf("seen %q, want 3 requests, %s first", w.seen, want)
	}
	if got, want := r.Counts(), (CallCounts{Calls: 3}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

// A list that is not whole is an error, whichever page failed.
func TestListFailsWithAnyPage(t *testing.T) {
	t.Parallel()
	r, _ := newReader(t, ECSReaderOptions{}, func(_ string, in map[string]any) (int, any) {
		if in["nextToken"] == nil {
			return 200, map[string]any{"taskArns": []string{taskID(1)}, "nextToken": "2"}
		}
		return 400, failure("AccessDeniedException")
	})
	_, err := list(t, r, TaskRunning)
	testkit.ErrorContains(t, err, "list tasks whose desired status is RUNNING, page 2: ")
	testkit.ErrorContains(t, err, "AccessDenied")
}

func TestErrorsOfPermissionsNameTheAction(t *testing.T) {
	t.Parallel()
	denied, _ := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		return 400, failure("AccessDeniedException")
	})
	unsigned := NewECSReader(aws.Config{Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no source of credentials")
		})}, ECSReaderOptions{CallsPerSecond: 1000})
	for action, call := range map[string]func(*ECSReader) error{
		"ecs:ListTasks": func(r *ECSReader) error { _, err := list(t, r, TaskRunning); return err },
		"ecs:DescribeTasks": func(r *ECSReader) error {
			_, err := r.Describe(t.Context(), cluster, []string{taskID(1)})
			return err
		},
		"ecs:DescribeTaskDefinition": func(r *ECSReader) error {
			_, err := r.DescribeTaskDefinition(t.Context(), "web:1")
			return err
		},
	} {
		if err := call(denied); err == nil ||
			!strings.HasSuffix(err.Error(), ": allow "+action+" in a policy of this process's role (taskRoleArn)") {
			t.Errorf("denied: %v", err)
		}
		if err := call(unsigned); err == nil ||
			!strings.HasSuffix(err.Error(),
				"no source of credentials: run this process with a role (taskRoleArn) whose policy allows "+action) {
			t.Errorf("without credentials: %v", err)
		}
	}
}

func TestDescribedTaskDefinitionIsAsECSAnswers(t *testing.T) {
	t.Parallel()
	r, _ := newReader(t, ECSReaderOptions{}, func(_ string, in map[string]any) (int, any) {
		if in["taskDefinition"] != "web:1" || fmt.Sprint(in["include"]) != "[TAGS]" {
			t.Errorf("request %v", in)
		}
		return 200, map[string]any{
			"taskDefinition": map[string]any{"taskDefinitionArn": "arn", "futureMember": 1},
			"tags":           []any{map[string]any{"key": "team", "value": "shop"}},
		}
	})
	text, err := r.DescribeTaskDefinition(t.Context(), "web:1")
	const want = `{"tags":[{"key":"team","value":"shop"}],"taskDefinition":{"futureMember":1,` +
		`"taskDefinitionArn":"arn"}}`
	if strings.TrimSpace(string(text)) != want || err != nil {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// A cluster that is not found was deleted, or is none that ECS knows.
func TestTasksOfNoCluster(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cluster  map[string]any
		status   int
		known    bool // what became of it
		inactive bool
	}{
		"deleted":         {map[string]any{"clusterArn": cluster, "status": "INACTIVE"}, 200, true, true},
		"another":         {map[string]any{"clusterArn": cluster + "2", "status": "INACTIVE"}, 200, true, false},
		"there after all": {map[string]any{"clusterArn": cluster, "status": "ACTIVE"}, 200, true, false},
		"still with tasks": {
			map[string]any{"clusterArn": cluster, "status": "INACTIVE", "runningTasksCount": 1}, 200, true, false,
		},
		"not allowed": {nil, 400, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReader(t, ECSReaderOptions{}, func(operation string, _ map[string]any) (int, any) {
				switch {
				case operation != "DescribeClusters":
					return 400, failure("ClusterNotFoundException")
				case tc.status != 200:
					return tc.status, failure("AccessDeniedException")
				}
				return 200, map[string]any{"clusters": []any{tc.cluster}}
			})
			_, listErr := list(t, r, TaskRunning)
			_, describeErr := r.DescribeTasks(t.Context(), cluster, []string{taskID(1)})
			for _, err := range []error{listErr, describeErr} {
				testkit.ErrorContains(t, err, "ClusterNotFound")
				none, got := errors.AsType[*NoClusterError](err)
				if got != tc.known {
					t.Errorf("%v is a NoClusterError: %v, want %v", err, got, tc.known)
				}
				if got && none.Inactive != tc.inactive {
					t.Errorf("inactive: %v, want %v", none.Inactive, tc.inactive)
				}
			}
		})
	}
}

// The same token for ever would be a list that never ends.
func TestListEndsWithARepeatedToken(t *testing.T) {
	t.Parallel()
	r, w := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		return 200, map[string]any{"taskArns": []string{}, "nextToken": "again"}
	})
	_, err := list(t, r, TaskRunning)
	if err == nil || len(w.seen) != 2 {
		t.Errorf("error = %v after %d calls: the list was not whole", err, len(w.seen))
	}
}

func TestRetriesAreCountedAndThrottlesToo(t *testing.T) {
	t.Parallel()
	answers := []string{"ThrottlingException", "ServerException", ""}
	r, _ := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		code := answers[0]
		answers = answers[1:]
		switch code {
		case "":
			return 200, map[string]any{"taskArns": []string{taskID(1)}}
		case "ServerException":
			return 500, failure(code)
		}
		return 400, failure(code)
	})
	ids, err := list(t, r, TaskRunning)
	if err != nil || len(ids) != 1 {
		t.Errorf("got %v, %v, want one task", ids, err)
	}
	if got, want := r.Counts(), (CallCounts{Calls: 3, Throttles: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if got := r.Counts().Sub(CallCounts{Calls: 1, Throttles: 1}); got != (CallCounts{Calls: 2}) {
		t.Errorf("Sub = %+v", got)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	r, _ := newReader(t, ECSReaderOptions{Attempts: 2},
		func(string, map[string]any) (int, any) { return 500, failure("ServerException") })
	_, err := list(t, r, TaskRunning)
	testkit.ErrorContains(t, err, "ServerException")
	if got := r.Counts().Calls; got != 2 {
		t.Errorf("%d calls, want 2", got)
	}
}

// The budget holds calls back, retries included: 2 at once, then one each 0.1 s.
func TestBudget(t *testing.T) {
	t.Parallel()
	var pages int
	r, _ := newReader(t, ECSReaderOptions{CallsPerSecond: 10}, func(string, map[string]any) (int, any) {
		if pages++; pages == 25 {
			return 200, map[string]any{}
		}
		return 200, map[string]any{"nextToken": fmt.Sprint(pages)}
	})
	start := time.Now()
	if _, err := list(t, r, TaskRunning); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("25 calls took %s, want 0.5 s at least: 20 at once, then 10 a second", took)
	}
}

func TestBudgetEndsWithTheContext(t *testing.T) {
	t.Parallel()
	r, w := newReader(t, ECSReaderOptions{CallsPerSecond: 0.0001},
		func(string, map[string]any) (int, any) { return 200, map[string]any{"nextToken": "2"} })
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience) // the next call would be hours later
	defer cancel()
	err := r.List(ctx, cluster, TaskRunning, func(string) {})
	testkit.ErrorContains(t, err, "budget of AWS calls")
	if len(w.seen) != 1 {
		t.Errorf("%d calls, want 1", len(w.seen))
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	stopped := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r, w := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		return 200, map[string]any{
			"tasks": []any{map[string]any{
				"taskArn": "arn:aws:ecs:us-east-1:123456789012:task/shop/" + taskID(1), "clusterArn": cluster,
				"lastStatus": "STOPPED", "desiredStatus": "STOPPED",
				"stoppedAt": stopped.Unix(), "stopCode": "UserInitiated",
				"group": "service:web", "containers": []any{map[string]any{"name": "app", "image": "web:7"}},
				"tags": []any{map[string]any{"key": "team", "value": "blue"}},
			}},
			"failures": []any{
				map[string]any{"arn": "arn:aws:ecs:us-east-1:123456789012:task/shop/" + taskID(2), "reason": "MISSING"},
			},
		}
	})
	got, err := r.Describe(t.Context(), cluster, []string{taskID(1), taskID(2), taskID(3)})
	want := DescribedTasks{
		Tasks: []ECSTask{{ID: taskID(1), ClusterARN: cluster, LastStatus: "STOPPED", DesiredStatus: "STOPPED",
			StoppedAt: stopped, StopCode: "UserInitiated",
			Group: "service:web", Images: map[string]string{"app": "web:7"},
			Tags: map[string]string{"team": "blue"}}},
		Failures: []TaskFailure{{ID: taskID(2), Reason: "MISSING"}},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if len(w.seen) != 1 || !strings.Contains(w.seen[0], `"include":["TAGS"]`) {
		t.Errorf("seen %q", w.seen)
	}
}

// A hundred tasks a call; and what AWS refused is only missing in the answer.
func TestDescribeInChunks(t *testing.T) {
	t.Parallel()
	var sizes []int
	r, _ := newReader(t, ECSReaderOptions{}, func(_ string, in map[string]any) (int, any) {
		tasks := in["tasks"].([]any)
		sizes = append(sizes, len(tasks))
		if len(sizes) == 2 {
			return 400, failure("InvalidParameterException")
		}
		var out []any
		for _, id := range tasks {
			out = append(out, map[string]any{"taskArn": cluster + "/" + id.(string), "lastStatus": "RUNNING"})
		}
		return 200, map[string]any{"tasks": out}
	})
	var ids []string
	for n := range 250 {
		ids = append(ids, taskID(n))
	}
	got, err := r.Describe(t.Context(), cluster, ids)
	if want := []int{100, 100, 50}; err == nil || !slices.Equal(sizes, want) {
		t.Errorf("chunks %v, %v; want %v and the error of the second", sizes, err, want)
	}
	if len(got.Tasks) != 150 || len(got.Failures) != 0 {
		t.Errorf("%d tasks and %d failures, want 150 and none", len(got.Tasks), len(got.Failures))
	}
}

// TestNoAnswerIsLostToItsOwnRequest: a body that the SDK has closed must read as
// ended to the goroutine that is still copying it, or the answer's connection is cut. The
// second attempt begins at the body's beginning.
func TestNoAnswerIsLostToItsOwnRequest(t *testing.T) {
	t.Parallel()
	var bodies []string
	transport := testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		text, err := io.ReadAll(r.Body)
		if err != nil || int64(len(text)) != r.ContentLength {
			t.Errorf("%d bytes of %d, %v", len(text), r.ContentLength, err)
		}
		if bodies = append(bodies, string(text)); len(bodies) == 1 {
			return nil, io.ErrUnexpectedEOF
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		if n, err := io.Copy(io.Discard, r.Body); n != 0 || err != nil {
			t.Errorf("a closed body copies as %d bytes, %v", n, err)
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")),
		}, nil
	})
	r := NewECSReader(aws.Config{
		Region: "us-east-1", HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
	}, ECSReaderOptions{})
	if _, err := r.Describe(t.Context(), cluster, []string{taskID(1)}); err != nil {
		t.Error(err)
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("sent %q, want the same twice", bodies)
	}
}

// Who is not allowed need not ask again and again.
func TestDescribeStopsWhenAWSIsAway(t *testing.T) {
	t.Parallel()
	calls := 0
	r, _ := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		calls++
		return 400, failure("AccessDeniedException")
	})
	_, err := r.Describe(t.Context(), cluster, make([]string, 300))
	if err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestNoEmptyLookup: AWS refuses to describe no task at all.
func TestNoEmptyLookup(t *testing.T) {
	t.Parallel()
	r, w := newReader(t, ECSReaderOptions{}, func(string, map[string]any) (int, any) {
		return 400, failure("InvalidParameterException")
	})
	got, err := r.Describe(t.Context(), cluster, nil)
	if err != nil || len(got.Tasks)+len(got.Failures) != 0 {
		t.Errorf("got %+v, %v, want nothing", got, err)
	}
	if w.seen != nil {
		t.Errorf("seen %v, want no request", w.seen)
	}
}

// A role's users are looked for on all pages, and an error keeps what was found.
func TestRoleUsers(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::123456789012:role/web"
	families := map[string]string{
		"api": role, "broken": "", "web": role, "worker": "arn:aws:iam::123456789012:role/worker",
	}
	answer := func(breaks bool) func(string, map[string]any) (int, any) {
		return func(operation string, in map[string]any) (int, any) {
			family, _ := in["taskDefinition"].(string)
			switch {
			case operation == "ListTaskDefinitionFamilies" && in["status"] != "ACTIVE":
				return http.StatusBadRequest, nil
			case operation == "ListTaskDefinitionFamilies" && in["nextToken"] == nil:
				return http.StatusOK, map[string]any{"families": []string{"api", "worker"}, "nextToken": "more"}
			case operation == "ListTaskDefinitionFamilies":
				return http.StatusOK, map[string]any{"families": []string{"broken", "web"}}
			case family == "broken" && breaks:
				return http.StatusBadRequest, map[string]any{"__type": "AccessDeniedException"}
			}
			return http.StatusOK, map[string]any{"taskDefinition": map[string]any{"taskRoleArn": families[family]}}
		}
	}
	for breaks, want := range map[bool][]string{false: {"api", "web"}, true: {"api"}} {
		r, _ := newReader(t, ECSReaderOptions{}, answer(breaks))
		got, err := r.RoleUsers(t.Context(), role)
		if !slices.Equal(got, want) || (err != nil) != breaks {
			t.Errorf("breaks %v: %q, error %v, want %q", breaks, got, err, want)
		}
	}
}
