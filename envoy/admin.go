package envoy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answerLimit bounds what is read of an answer.
const answerLimit = 16 << 20

// Ask returns the answer of the Envoy with that admin address (host:port). It obeys its
// context and has no own timeout.
func Ask(ctx context.Context, method, address, path string) ([]byte, error) {
	// No idle connection may stay open.
	return ask(ctx, &http.Transport{DisableKeepAlives: true}, method, address, path)
}

// Asker returns a function that asks by GET, as Ask does, over one connection that stays open:
// for a caller that asks again and again.
func Asker(address string) func(ctx context.Context, path string) ([]byte, error) {
	const buffer = 1 << 10
	kept := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true,
		ReadBufferSize: buffer, WriteBufferSize: buffer}
	return func(ctx context.Context, path string) ([]byte, error) {
		return ask(ctx, kept, http.MethodGet, address, path)
	}
}

// ask takes a transport that is not the default one: a proxy from the environment must not come between.
func ask(ctx context.Context, transport *http.Transport, method, address, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answered %s: %.200s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err == nil && len(body) > answerLimit {
		err = fmt.Errorf("envoy's answer has more than %d bytes", answerLimit)
	}
	return body, err
}
