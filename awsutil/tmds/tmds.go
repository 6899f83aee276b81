package tmds

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
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

// Client reads one task's metadata. It is safe for concurrent use and keeps
// its connection open between reads.
type Client struct {
	url  string
	http *http.Client
	size atomic.Int64 // of the last answer
}

// New returns a client for the base URI in EnvVar, whose reads all fail when it
// is empty. It does no I/O.
func New(baseURI string) *Client {
	return &Client{
		url: strings.TrimRight(baseURI, "/") + taskPath,
		http: &http.Client{
			Timeout: Timeout,
			Transport: &http.Transport{
				MaxIdleConns:    1,
				IdleConnTimeout: 30 * time.Second,
			},
			// The endpoint never redirects; whatever does is not the endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Task reads the task. Any answer that is not status 200 with a usable task is
// an error, never an empty task.
func (c *Client) Task(ctx context.Context) (workload.Task, error) {
	body, err := c.get(ctx)
	if err != nil {
		return workload.Task{}, fmt.Errorf("read task metadata: %w", err)
	}
	task, err := workload.ParseTask(body)
	if err != nil {
		return workload.Task{}, fmt.Errorf("read task metadata from %s: %w", c.url, err)
	}
	return task, nil
}

// get returns the body of a 200 answer. Errors name the address.
func (c *Client) get(ctx context.Context) ([]byte, error) {
	if c.url == taskPath {
		return nil, fmt.Errorf("%s is not set", EnvVar)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := c.read(resp.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", c.url, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: status %d: %s", c.url, resp.StatusCode, excerpt(body))
	case len(body) > maxBody:
		return nil, fmt.Errorf("GET %s: answer is longer than %d bytes", c.url, maxBody)
	}
	return body, nil
}

// read reads a body, of which the last one's size is a good guess: the endpoint
// does not announce it, and a buffer that grows by and by would be most of what
// a reader leaves behind each second.
func (c *Client) read(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(c.size.Load()) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(r, maxBody+1))
	c.size.Store(int64(b.Len()))
	return b.Bytes(), err
}

// excerpt is the start of a body, fit for one log line.
func excerpt(body []byte) string {
	s := strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " ")
	if s == "" {
		return "empty answer"
	}
	return s
}
