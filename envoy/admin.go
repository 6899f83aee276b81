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
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	// Not the default transport: a proxy from the environment must not
	// come between, nor an idle connection stay open.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
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
