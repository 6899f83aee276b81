package docker

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/moby/moby/client"
)

// newClient returns a client of the engine at an address. Every call fails when its
// answer has not started within the limit; hijack is for those that are not HTTP.
func newClient(address string, limit time.Duration) (*client.Client, error) {
	transport := &http.Transport{MaxIdleConns: 6, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: limit}
	return client.New(
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithHost(address), client.WithScheme("http"), // a cloned transport has a TLS configuration, and the client takes that for https
	)
}

// hijack makes a call whose connection becomes a stream, and gives it up after the
// limit or when ctx ends.
func hijack(ctx context.Context, limit time.Duration, call func() (client.HijackedResponse, error)) (client.HijackedResponse, error) {
	type result struct {
		client.HijackedResponse
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := call()
		done <- result{r, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case r := <-done:
		return r.HijackedResponse, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.Close()
			}
		}()
		return client.HijackedResponse{}, fmt.Errorf("the Docker engine has not answered: %w", ctx.Err())
	}
}
