// Command ask asks for task metadata at a fixed rate from inside a task, and
// for the same bytes of a plain server, in turns of one length by the clock, so
// that all tasks of a host are at the same thing. At TERM it prints a line for
// each answer: the round (two turns), whom it asked, how long that took.
//
// "ask serve" is that server: net/http and nothing else, with the bytes it once
// got itself.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil/tmds"
)

func main() {
	if err := run(os.Args[1:], os.Getenv(tmds.EnvVar)+"/task"); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func run(args []string, url string) error {
	if len(args) == 2 && args[0] == "serve" {
		return serve(args[1], url)
	}
	if len(args) != 3 {
		return fmt.Errorf("usage: ask serve ADDRESS | ask ADDRESS TURN EVERY")
	}
	turn, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	every, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	return ask(url, "http://"+args[0], turn, every)
}

func serve(address, url string) error {
	body, err := get(url)
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
}

// get returns the body of an answer.
func get(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// ask runs until TERM.
func ask(ours, plain string, turn, every time.Duration) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	tick := time.NewTicker(every)
	for _, err := get(plain); err != nil; _, err = get(plain) {
		<-tick.C // it starts beside this program
	}
	var lines bytes.Buffer
	for {
		select {
		case <-tick.C:
		case <-term:
			_, err := os.Stdout.Write(lines.Bytes())
			return err
		}
		start := time.Now()
		number, whom, url := start.UnixNano()/int64(turn), "ours", ours
		if number%2 == 1 {
			whom, url = "plain", plain
		}
		if _, err := get(url); err != nil {
			return err
		}
		fmt.Fprintln(&lines, number/2, whom, time.Since(start).Nanoseconds())
	}
}
