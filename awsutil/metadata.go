package awsutil

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/workload"
)

// MetadataEnvVar is where ECS puts the endpoint's base URI for a container.
const MetadataEnvVar = "ECS_CONTAINER_METADATA_URI_V4"

// MetadataTimeout bounds one read, connection and body included. The endpoint is on
// the same host; one that takes longer is overloaded, and the next read is more likely
// to succeed.
const MetadataTimeout = 2 * time.Second

// maxMetadata is far above any real task (10 containers need about 30 KiB) and
// keeps a misbehaving endpoint from filling the task's memory.
const maxMetadata = 4 << 20

// taskPath follows the base URI.
const taskPath = "/task"

// MetadataClient reads one task's metadata for one of its containers, the one it runs in.
// It is safe for concurrent use, reads once at a time, and keeps its connection open
// between reads.
type MetadataClient struct {
	base string

	// turn is held by the read that uses the fields below.
	turn chan struct{}
	conn metadataConn
	// self is the name of this container, empty until the endpoint has named it.
	self string
	// body is the last valid answer, and task its meaning: while a task is
	// idle, answers are equal, and parsing is most of a read's cost. next is for the
	// answer of the next read.
	body, next *bytes.Buffer
	task       workload.Task
}

// NewMetadataClient returns a client for the base URI in MetadataEnvVar, whose reads all fail when it
// is empty. It does no I/O.
func NewMetadataClient(baseURI string) *MetadataClient {
	return &MetadataClient{
		base: strings.TrimRight(baseURI, "/"),
		turn: make(chan struct{}, 1),
		// No proxy, which could not reach the link-local address.
		conn: metadataConn{dial: new(net.Dialer).DialContext, timeout: MetadataTimeout},
		body: new(bytes.Buffer),
		next: new(bytes.Buffer),
	}
}

// Task reads the task. An answer that is not status 200 with a task that lists this
// container is an error, never an empty task; where the endpoint does not name this
// container, any container will do. Callers must not change the result: later reads may
// return it again.
func (c *MetadataClient) Task(ctx context.Context) (workload.Task, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return workload.Task{}, fmt.Errorf("read task metadata: %w", ctx.Err())
	}
	if err := c.read(ctx); err != nil {
		return workload.Task{}, fmt.Errorf("read task metadata: %w", err)
	}
	return c.task, nil
}

// Self returns the name of this container, which is empty until a first Task, and as long
// as the endpoint does not name it.
func (c *MetadataClient) Self() string {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.self
}

// read makes task the answer's.
func (c *MetadataClient) read(ctx context.Context) error {
	url := c.base + taskPath
	if err := c.get(ctx, url, c.next); err != nil {
		return err
	}
	if c.body.Len() > 0 && bytes.Equal(c.next.Bytes(), c.body.Bytes()) {
		return nil
	}
	task, err := workload.ParseTask(c.next.Bytes())
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	if c.self == "" {
		if c.self, err = c.ownName(ctx); err != nil {
			return err
		}
	}
	switch {
	case len(task.Containers) == 0:
		return fmt.Errorf("GET %s: the answer lists no container", url)
	case c.self != "" && !task.Lists(c.self):
		return fmt.Errorf("GET %s: the answer does not list this container, %q", url, c.self)
	}
	c.task, c.body, c.next = task, c.next, c.body
	return nil
}

// ownName reads this container's name, which the base URI answers to it; empty for an
// endpoint that serves the task only, which was enough for earlier versions. The
// URI's last segment cannot be used: on EC2 it is an ID of the endpoint, which
// no answer contains.
func (c *MetadataClient) ownName(ctx context.Context) (string, error) {
	var body bytes.Buffer
	var container workload.Container
	err := c.get(ctx, c.base, &body)
	switch {
	case errors.Is(err, errNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	if err := json.Unmarshal(body.Bytes(), &container); err != nil {
		return "", fmt.Errorf("GET %s: %w", c.base, err)
	}
	return container.Name, nil
}

// errNotFound is a status of 404.
var errNotFound = errors.New("status 404")

// get reads the body of a 200 answer. Errors name the address.
func (c *MetadataClient) get(ctx context.Context, url string, body *bytes.Buffer) error {
	if c.base == "" {
		return fmt.Errorf("%s is not set", MetadataEnvVar)
	}
	status, err := c.conn.get(ctx, url, body)
	switch {
	case err != nil:
		return fmt.Errorf("GET %s: %w", url, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("GET %s: %w: %s", url, errNotFound, excerpt(body.Bytes()))
	case status != http.StatusOK:
		return fmt.Errorf("GET %s: status %d: %s", url, status, excerpt(body.Bytes()))
	case body.Len() > maxMetadata:
		return fmt.Errorf("GET %s: answer is longer than %d bytes", url, maxMetadata)
	}
	return nil
}

// excerpt returns the start of a body, fit for one log line.
func excerpt(body []byte) string {
	s := strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " ")
	if s == "" {
		return "empty answer"
	}
	return s
}
