// Command ready says so and waits for TERM: the least that a container that
// stays can do.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	<-term
}
