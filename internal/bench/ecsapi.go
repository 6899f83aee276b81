package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

const (
	simulatedTasks = 10_000
	// apiPage is the most that ListTasks lists and DescribeTasks describes.
	apiPage   = 100
	apiRounds = 5
	// apiCalls is how often a round makes each call.
	apiCalls = 200
)

// apiFigure asks a local ECS with ten thousand tasks that have no processes, over
// HTTP and with AWS's own client, and a plain server for the same bytes.
func apiFigure(s *stage) ([]row, error) {
	before := heap()
	w, err := simulated.Open(simulated.Options{})
	if err != nil {
		return nil, err
	}
	s.onClose(w.Close)
	begin := time.Now()
	arns, err := w.Run(simulated.Group{Family: "web", Count: simulatedTasks, Tags: map[string]string{"consul.hashicorp.com/mesh": "true", "team": "shop"}})
	if err != nil {
		return nil, err
	}
	up := seconds.of(time.Since(begin))
	each := (heap() - before) / simulatedTasks / 1e3
	asked := make([]apiRound, s.repeat(apiRounds))
	for i := range asked {
		if asked[i], err = s.askAPI(w, arns, apiCalls); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("localecs, %d tasks without processes: ", simulatedTasks)
	rows := []row{
		{what + "first RunTask to all RUNNING", seconds, "", "2", sample{up}, nil},
		{what + "heap, a task", kilobytes, "", "", sample{each}, nil},
	}
	return append(rows, apiRows(what, asked)...), nil
}

// heap is what is live, in bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// apiRound is one round: milliseconds of each call, of ours and of the plain
// server; all is the whole list in seconds.
type apiRound struct {
	list, describe asked
	all            float64
}

// askAPI is one round of so many calls. The two servers are asked in turns.
func (s *stage) askAPI(w *simulated.World, arns []string, calls int) (r apiRound, err error) {
	server := httptest.NewServer(w)
	defer server.Close()
	floor := &canned{next: w, answers: map[string][]byte{}}
	plain := httptest.NewServer(floor)
	defer plain.Close()
	ours, peer := apiClient(w, server), apiClient(w, plain)
	for range calls {
		few := make([]string, apiPage)
		for i := range few {
			few[i] = arns[rand.IntN(len(arns))]
		}
		for _, turn := range []struct {
			client                 *sdk.Client
			listTook, describeTook *sample
		}{{ours, &r.list.ours, &r.describe.ours}, {peer, &r.list.plain, &r.describe.plain}} {
			begin := time.Now()
			if _, err := turn.client.ListTasks(s.ctx, &sdk.ListTasksInput{}); err != nil {
				return r, err
			}
			listed := time.Now()
			if err := describe(s.ctx, turn.client, few); err != nil {
				return r, err
			}
			turn.listTook.add(milliseconds.of(listed.Sub(begin)))
			turn.describeTook.add(milliseconds.of(time.Since(listed)))
		}
	}
	begin := time.Now()
	err = everything(s.ctx, ours, len(arns))
	r.all = seconds.of(time.Since(begin))
	return r, err
}

func apiClient(w *simulated.World, server *httptest.Server) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: w.Region(), BaseEndpoint: aws.String(server.URL), HTTPClient: &http.Client{Transport: held{server.Client().Transport}}, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: w.Key.AccessKeyID, SecretAccessKey: w.Key.Secret}, nil
		}),
	})
}

// held gives each request a body of its own: the SDK closes its bodies as soon as
// there is an answer, and net/http, which may not have seen their end by then, then
// closes the connection while the answer is being read.
type held struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return h.RoundTripper.RoundTrip(own)
}

// describe describes tasks with their tags, and wants all of them.
func describe(ctx context.Context, c *sdk.Client, arns []string) error {
	out, err := c.DescribeTasks(ctx, &sdk.DescribeTasksInput{Tasks: arns, Include: []types.TaskField{types.TaskFieldTags}})
	if err == nil && len(out.Tasks) != len(arns) {
		err = fmt.Errorf("%d of %d tasks were described", len(out.Tasks), len(arns))
	}
	return err
}

// everything lists all tasks and describes each page.
func everything(ctx context.Context, c *sdk.Client, tasks int) error {
	seen := 0
	for pages := sdk.NewListTasksPaginator(c, &sdk.ListTasksInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err == nil {
			err = describe(ctx, c, page.TaskArns)
			seen += len(page.TaskArns)
		}
		if err != nil {
			return err
		}
	}
	if seen != tasks {
		return fmt.Errorf("%d of %d tasks were listed", seen, tasks)
	}
	return nil
}

// canned is a handler that answers with the first answer of an operation, again
// and again.
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
		var body bytes.Buffer
		recorder := &httptest.ResponseRecorder{Body: &body}
		c.next.ServeHTTP(recorder, r)
		answer = body.Bytes()
		c.answers[operation] = answer
	}
	c.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Write(answer)
}

func apiRows(what string, rounds []apiRound) []row {
	var rows []row
	for _, call := range []struct {
		name, goal string
		of         func(apiRound) asked
	}{
		{"ListTasks, a page of 100", "10", func(r apiRound) asked { return r.list }},
		{"DescribeTasks of 100 with TAGS", "20", func(r apiRound) asked { return r.describe }},
	} {
		for _, p := range []int{50, 99} {
			var ours, plain sample
			for _, r := range rounds {
				ours.add(call.of(r).ours.percentile(p))
				plain.add(call.of(r).plain.percentile(p))
			}
			rows = append(rows, row{fmt.Sprintf("%s%s: p%d", what, call.name, p), milliseconds, "", call.goal, ours, []reference{{"the same bytes, plain net/http", plain}}})
		}
	}
	var all sample
	for _, r := range rounds {
		all.add(r.all)
	}
	return append(rows, row{what + "all listed and described, 200 calls", seconds, "", "", all, nil})
}
