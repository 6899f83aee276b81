package simulated_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// apiPage is the most that ListTasks lists and DescribeTasks describes.
const apiPage = 100

// BenchmarkAPI calls the ECS API with ten thousand tasks by AWS's own client over HTTP,
// and a plain net/http server that answers with the same bytes.
func BenchmarkAPI(b *testing.B) {
	const tasks = 10_000
	before := heap()
	w, err := awstest.OpenSimulator(simulated.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	begin := time.Now()
	arns, err := w.Run(awstest.TaskGroup{Family: "web", Count: tasks,
		Tags: map[string]string{"consul.hashicorp.com/mesh": "true", "team": "shop"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d tasks: RunTask to all RUNNING %.1f s, %.1f kB of heap a task", tasks, time.Since(begin).Seconds(),
		(heap()-before)/tasks/1e3)
	for name, h := range map[string]http.Handler{"localecs": w,
		"same bytes": &canned{next: w, answers: map[string][]byte{}}} {
		server := httptest.NewServer(h)
		defer server.Close()
		client := newClient(w, server)
		b.Run("ListTasks/"+name, func(b *testing.B) {
			measure(b, func() error {
				_, err := client.ListTasks(b.Context(), &ecs.ListTasksInput{})
				return err
			})
		})
		b.Run("DescribeTasks/"+name, func(b *testing.B) {
			measure(b, func() error {
				few := make([]string, apiPage)
				for i := range few {
					few[i] = arns[rand.IntN(len(arns))]
				}
				return describe(b.Context(), client, few)
			})
		})
	}
	server := httptest.NewServer(w)
	defer server.Close()
	b.Run("all listed and described", func(b *testing.B) {
		for b.Loop() {
			if err := describeAll(b.Context(), newClient(w, server), len(arns)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// measure reports percentiles beside the mean.
func measure(b *testing.B, call func() error) {
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(took[(len(took)*p+99)/100-1].Seconds()*1e3, fmt.Sprintf("p%d-ms", p))
	}
}

// heap returns the live bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func newClient(w *awstest.Simulator, server *httptest.Server) *ecs.Client {
	return ecs.New(ecs.Options{
		Region: w.Region(), BaseEndpoint: aws.String(server.URL),
		HTTPClient: &http.Client{Transport: buffered{server.Client().Transport}}, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: w.Key.AccessKeyID, SecretAccessKey: w.Key.Secret}, nil
		}),
	})
}

// buffered gives each request a body that the SDK does not close: it closes its bodies
// when an answer arrives, and net/http, which may not have read their end by then,
// would close the connection while the answer is read.
type buffered struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t buffered) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	clone := r.Clone(r.Context())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	return t.RoundTripper.RoundTrip(clone)
}

// describe describes tasks with their tags and fails unless all are described.
func describe(ctx context.Context, c *ecs.Client, arns []string) error {
	out, err := c.DescribeTasks(ctx,
		&ecs.DescribeTasksInput{Tasks: arns, Include: []types.TaskField{types.TaskFieldTags}})
	if err == nil && len(out.Tasks) != len(arns) {
		err = fmt.Errorf("%d of %d tasks were described", len(out.Tasks), len(arns))
	}
	return err
}

// describeAll lists all tasks and describes each page.
func describeAll(ctx context.Context, c *ecs.Client, tasks int) error {
	listed := 0
	for pages := ecs.NewListTasksPaginator(c, &ecs.ListTasksInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err == nil {
			err = describe(ctx, c, page.TaskArns)
			listed += len(page.TaskArns)
		}
		if err != nil {
			return err
		}
	}
	if listed != tasks {
		return fmt.Errorf("%d of %d tasks were listed", listed, tasks)
	}
	return nil
}

// canned answers each operation with its first answer.
type canned struct {
	next http.Handler

	mu      sync.Mutex
	answers map[string][]byte
}

// ServeHTTP implements http.Handler.
func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := r.Header.Get("X-Amz-Target")
	c.mu.Lock()
	answer := c.answers[operation]
	if answer == nil {
		recorder := httptest.NewRecorder()
		c.next.ServeHTTP(recorder, r)
		answer = recorder.Body.Bytes()
		c.answers[operation] = answer
	}
	c.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Write(answer)
}
