package tmds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/workload"
)

// EnvVar is where ECS tells a container the endpoint's base URI.
const EnvVar = "ECS_CONTAINER_METADATA_URI_V4"

// Timeout bounds one read, connection and body included. The endpoint is on
// the same host; one that takes longer is ill and the caller's next read is
// worth more than waiting.
const Timeout = 2 * time.Second

// maxBody is far above any real task (10 containers need about 30 KiB) and
// keeps a misbehaving endpoint from filling the task's memory.
const maxBody = 4 << 20

// taskPath follows the base URI.
const taskPath = "/task"

// Client reads one task's metadata for one of its containers, the one it runs in.
// It is safe for concurrent use and keeps its connection open between reads.
type Client struct {
	base string
	http *http.Client

	mu sync.Mutex
	// self is the name of this container, empty until the endpoint has named it.
	self string
	// body is the last valid answer, and task its meaning: at rest, one answer
	// equals the other, and to parse it is most of a read's cost.
	body []byte
	task workload.Task
}

// New returns a client for the base URI in EnvVar, whose reads all fail when it
// is empty. It does no I/O.
func New(baseURI string) *Client {
	return &Client{
		base: strings.TrimRight(baseURI, "/"),
		http: &http.Client{
			Timeout: Timeout,
			Transport: &http.Transport{
				MaxIdleConns:       1,
				IdleConnTimeout:    30 * time.Second,
				DisableCompression: true,
			},
			// The endpoint never redirects; whatever does is not the endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Task reads the task. Any answer that is not status 200 with a task that lists
// this container is an error, never an empty task. Callers must not change the
// result: later reads may return it again.
func (c *Client) Task(ctx context.Context) (workload.Task, error) {
	task, err := c.readTask(ctx)
	if err != nil {
		return workload.Task{}, fmt.Errorf("read task metadata: %w", err)
	}
	return task, nil
}

// Self returns the name of this container, which is empty until a first Task.
func (c *Client) Self() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

func (c *Client) readTask(ctx context.Context) (workload.Task, error) {
	c.mu.Lock()
	self, last, task := c.self, c.body, c.task
	c.mu.Unlock()
	url := c.base + taskPath
	body, err := c.get(ctx, url, len(last))
	if err != nil {
		return workload.Task{}, err
	}
	if len(last) > 0 && bytes.Equal(body, last) {
		return task, nil
	}
	if task, err = workload.ParseTask(body); err != nil {
		return workload.Task{}, fmt.Errorf("GET %s: %w", url, err)
	}
	if self == "" {
		if self, err = c.ownName(ctx); err != nil {
			return workload.Task{}, err
		}
	}
	if !task.Lists(self) {
		return workload.Task{}, fmt.Errorf("GET %s: the answer does not list this container, %q", url, self)
	}
	c.mu.Lock()
	c.self, c.body, c.task = self, body, task
	c.mu.Unlock()
	return task, nil
}

// ownName reads this container's name, which the base URI answers to it. The
// URI's last segment does not do: on EC2 it is an ID of the endpoint, which
// no answer contains.
func (c *Client) ownName(ctx context.Context) (string, error) {
	body, err := c.get(ctx, c.base, 0)
	if err != nil {
		return "", err
	}
	var container workload.Container
	if err := json.Unmarshal(body, &container); err != nil {
		return "", fmt.Errorf("GET %s: parse container metadata: %w", c.base, err)
	}
	if container.Name == "" {
		return "", fmt.Errorf("GET %s: no Name in %s", c.base, excerpt(body))
	}
	return container.Name, nil
}

// get returns the body of a 200 answer, for which size is a guess: the endpoint
// does not announce it. Errors name the address.
func (c *Client) get(ctx context.Context, url string, size int) ([]byte, error) {
	if c.base == "" {
		return nil, fmt.Errorf("%s is not set", EnvVar)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	body.Grow(size + bytes.MinRead)
	_, err = body.ReadFrom(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", url, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: status %d: %s", url, resp.StatusCode, excerpt(body.Bytes()))
	case body.Len() > maxBody:
		return nil, fmt.Errorf("GET %s: answer is longer than %d bytes", url, maxBody)
	}
	return body.Bytes(), nil
}

// excerpt is the start of a body, fit for one log line.
func excerpt(body []byte) string {
	s := strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " ")
	if s == "" {
		return "empty answer"
	}
	return s
}
