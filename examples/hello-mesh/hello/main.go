// Command hello is the application of the hello-mesh example: a server that
// says hello (api), a server that asks another one (web), and the health check
// of both (get). It knows nothing of the mesh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const usage = `usage: hello [-drain 20s] api ADDRESS            answer with a greeting
       hello [-drain 20s] web ADDRESS UPSTREAM   answer with what UPSTREAM answers
       hello get URL                             exit 0 when URL answers 200

With -drain it goes on for that long after TERM. web asks UPSTREAM ten times a
second meanwhile, as one that finishes long work would, and exits with 1 if
one request fails.
`

func main() {
	log.SetFlags(log.Lmicroseconds)
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	drain := flag.Duration("drain", 0, "")
	flag.Parse()
	args := flag.Args()
	var err error
	switch {
	case len(args) == 2 && args[0] == "api":
		err = serve(args[1], greet, func() error { return wait(*drain) })
	case len(args) == 3 && args[0] == "web":
		err = serve(args[1], ask(args[2]), func() error { return keepCalling(args[2], *drain) })
	case len(args) == 2 && args[0] == "get":
		err = get(args[1])
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// greet answers with a line that says which task answered.
func greet(w http.ResponseWriter, _ *http.Request) {
	host, _ := os.Hostname()
	fmt.Fprintf(w, "hello from %s\n", host)
}

// newClient makes a separate connection for each request, so that every loss
// is seen.
func newClient() *http.Client {
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
}

// ask passes the request on to upstream once: no retry.
func ask(upstream string) http.HandlerFunc {
	client := newClient()
	return func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, upstream, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			log.Printf("upstream: %v", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}
}

func wait(d time.Duration) error {
	<-time.After(d)
	return nil
}

// keepCalling calls upstream for d.
func keepCalling(upstream string, d time.Duration) error {
	client, over := newClient(), time.After(d)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-over:
			log.Printf("%d requests answered after TERM", n)
			return nil
		case <-tick.C:
			if err := request(client, upstream); err != nil {
				return fmt.Errorf("request %d after TERM: %w", n+1, err)
			}
		}
	}
}

// serve answers / with handle, and /health with a state that a POST to
// /health/fail and /health/ok changes. On TERM it drains, still serving, and
// finishes what it has started.
func serve(address string, handle http.HandlerFunc, drain func() error) error {
	var failing atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/", handle)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			http.Error(w, "failing on request", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /health/fail", func(http.ResponseWriter, *http.Request) { failing.Store(true) })
	mux.HandleFunc("POST /health/ok", func(http.ResponseWriter, *http.Request) { failing.Store(false) })

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// More than callers wait: on a busy machine a request may take seconds to arrive.
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 30 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		log.Print("finishing")
		err := drain()
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- errors.Join(err, server.Shutdown(limit))
	}()
	log.Printf("listening on %s", address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

func get(url string) error { return request(&http.Client{Timeout: 3 * time.Second}, url) }

func request(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}
