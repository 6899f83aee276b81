// Command tokendemo is the application of the token-broker example, and two tasks that
// show what a handle of the broker is worth:
//
//	tokendemo app ADDRESS KEY-URL TOKEN-FILE           answers with a key of Consul's KV store
//	tokendemo owner METADATA BROKER CA THIEF CONSUL    asks for a token, and leaks the handle
//	tokendemo thief BROKER ADDRESS                     tries what it is given, at the broker
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds the wait for what other tasks do.
const patience = 90 * time.Second

func main() {
	log.SetFlags(log.Lmicroseconds)
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 4 && args[0] == "app":
		err = serve(args[1], &app{url: args[2], file: args[3]})
	case len(args) == 6 && args[0] == "owner":
		err = own(args[1], args[2], args[3], args[4], args[5])
	case len(args) == 3 && args[0] == "thief":
		err = serve(args[2], steal(args[1]))
	default:
		err = errors.New("usage: tokendemo app|owner|thief ARGUMENTS")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// serve answers until TERM.
func serve(address string, handler http.Handler) error {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
		failed <- server.ListenAndServe()
	}()
	select {
	case <-terminated:
		return nil
	case err := <-failed:
		return err
	}
}

// app reads its token from the file for each request, as an application must that does
// not watch the file.
type app struct {
	url, file string

	mu     sync.Mutex
	tokens []string
}

// ServeHTTP answers with the key's value, and at /tokens with how many tokens have worked
// so far.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/tokens" {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range a.tokens {
			fmt.Fprintf(w, "token %d\n", i+1)
		}
		return
	}
	token, err := a.token(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	status, body, err := call(http.DefaultClient, http.MethodGet, a.url, token, nil)
	if err != nil || status != http.StatusOK {
		log.Printf("read the key: status %d, %v", status, err)
		http.Error(w, "no key", http.StatusBadGateway)
		return
	}
	a.worked(token)
	fmt.Fprintf(w, "%s\n", body)
}

// token waits for the first token.
func (a *app) token(r *http.Request) (string, error) {
	for limit := time.Now().Add(patience); ; {
		text, err := os.ReadFile(a.file)
		if err == nil || time.Now().After(limit) {
			return strings.TrimSpace(string(text)), err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
			return "", r.Context().Err()
		}
	}
}

func (a *app) worked(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.tokens); n == 0 || a.tokens[n-1] != token {
		a.tokens = append(a.tokens, token)
		log.Printf("token %d works", n+1)
	}
}

// stolen is what the owner lets the thief have.
type stolen struct {
	Request tokenRequest `json:"request"`
	Unwrap  unwrap       `json:"unwrap"`
}

// steal redeems a handle that is another task's, and asks for a token in its name. It
// answers with what the broker said.
func steal(broker string) http.HandlerFunc {
	// A thief trusts any certificate.
	client := &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	} //nolint:gosec
	return func(w http.ResponseWriter, r *http.Request) {
		var loot stolen
		if err := json.NewDecoder(r.Body).Decode(&loot); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, try := range []struct {
			path string
			body any
		}{{"/v1/token", loot.Request}, {"/v1/unwrap", loot.Unwrap}} {
			status, _, err := post(client, broker+try.path, try.body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			fmt.Fprintf(w, "%s %d\n", try.path, status)
		}
	}
}

func post(client *http.Client, url string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	return call(client, http.MethodPost, url, "", text)
}

func call(client *http.Client, method, url, token string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("X-Consul-Token", token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer, err
}
