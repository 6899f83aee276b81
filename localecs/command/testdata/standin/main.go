// Command standin takes the place of every program of an image: it prints what it was
// started with and the signal that stops it. As /healthy it is the container's health check.
package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if os.Args[0] == "/healthy" {
		return
	}
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	out := json.NewEncoder(os.Stdout)
	start := map[string]any{"argv": os.Args, "uid": os.Getuid(), "gid": os.Getgid(), "pid": os.Getpid()}
	if err := out.Encode(start); err != nil {
		os.Exit(1)
	}
	if err := out.Encode(map[string]any{"signal": (<-stops).String()}); err != nil {
		os.Exit(1)
	}
}
