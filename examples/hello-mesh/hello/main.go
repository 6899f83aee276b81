// Command hello is the application of the hello-mesh example: a server that
// says hello (api), a server that asks another one (web), and the health check
// of both (get). It knows nothing of the mesh.
package main

import (
	"context"
	"errors"
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

const usage = `usage: hello api ADDRESS            answer with a greeting
       hello web ADDRESS UPSTREAM   answer with what UPSTREAM answers
       hello get URL                exit 0 when URL answers 200
`

func main() {
	log.SetFlags(log.Lmicroseconds)
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "api":
		err = serve(args[1], greet)
	case len(args) == 3 && args[0] == "web":
		err = serve(args[1], ask(args[2]))
	case len(args) == 2 && args[0] == "get":
		err = get(args[1])
	default:
		fmt.Fprint(os.Stderr, usage)
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

// ask passes the request on to upstream once: no retry, and a connection of its
// own for each request, so that every loss is seen.
func ask(upstream string) http.HandlerFunc {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
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

// serve answers / with handle, and /health with a state that a POST to
// /health/fail and /health/ok changes. On TERM it finishes what it has begun.
func serve(address string, handle http.HandlerFunc) error {
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
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		log.Print("finishing")
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- server.Shutdown(limit)
	}()
	log.Printf("listening on %s", address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

func get(url string) error {
	client := &http.Client{Timeout: 3 * time.Second}
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
