package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program runs in containers of the image "tools": this test binary as /bin/helper. It says what happens to it, each
// line with the time.
func program(args []string) int {
	switch args[0] {
	case "run": // run WAIT CODE: ends WAIT after a signal, with CODE; "linger", at SIGINT
		return run(args[1], args[2])
	case "exit": // exit CODE AFTER
		pause(args[2])
		return number(args[1])
	case "block": // a Go program that does not ask for signals
		say("ready")
		pause("1h")
	case "probe": // probe RESULTS: the nth call ends as the nth letter says
		return probe(args[1])
	case "equal":
		if args[1] != args[2] {
			return 2
		}
	case "whoami":
		dir, _ := os.Getwd()
		fmt.Printf("uid %d gid %d in %s\n", os.Getuid(), os.Getgid(), dir)
	case "print": // print WORD...
		fmt.Printf("%q\n", args[1:])
	case "write": // write FILE...: the error of each, then ready
		for _, file := range args[1:] {
			fmt.Println(file, errorName(os.WriteFile(file, []byte("written\n"), 0o644)))
		}
		return run("0s", "0")
	case "read": // read FILE...
		for _, file := range args[1:] {
			text, err := os.ReadFile(file)
			fmt.Printf("%s %s %q\n", file, errorName(err), text)
		}
	case "processes":
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			line, _ := os.ReadFile(name)
			fmt.Println(strings.ReplaceAll(strings.Trim(string(line), "\x00"), "\x00", " "))
		}
		return run("0s", "0")
	case "eat": // eat MIB: uses that much memory, then is ready
		if err := eat(number(args[1])); err != nil {
			fmt.Println(err)
			return 1
		}
		return run("0s", "0")
	case "aws": // aws URL: asks STS there
		return whoAmI(args[1])
	case "byname": // byname HOST...
		return byName(args[1:])
	case "tick": // says something every 5 ms
		for range time.Tick(5 * time.Millisecond) {
			say("tick")
		}
	case "ask": // ask ADDRESS: the metadata endpoint and the server there in turns
		return failed(askInTurns(args[1]))
	case "answer": // answer ADDRESS: serves the task's metadata there
		return failed(answerMetadata(args[1]))
	case "net": // net [listen|dial]=ADDRESS...
		return connect(args[1:])
	default:
		return 125
	}
	return 0
}

func failed(err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// say prints a word and the time in nanoseconds.
func say(words ...any) { fmt.Println(append(words, time.Now().UnixNano())...) }

func pause(duration string) {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	<-time.After(d)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// eat maps the memory: of what Go allocates, the race detector would use four times as much again.
func eat(mib int) error {
	food, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	for i := 0; i < len(food); i += 4096 {
		food[i] = 1
	}
	return err
}

func run(wait, code string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	say("ready")
	ended := make(chan bool)
	for first := true; ; first = false {
		select {
		case got := <-signals:
			say(unix.SignalName(got.(syscall.Signal)))
			switch {
			case wait == "linger" && got == syscall.SIGINT:
				return number(code)
			case wait != "linger" && first:
				go func() { pause(wait); close(ended) }()
			}
		case <-ended:
			return number(code)
		}
	}
}

// probe counts its calls in a file. P passes; F fails with 2; the last letter repeats.
func probe(results string) int {
	const file = "/tmp/probes"
	past, _ := os.ReadFile(file)
	n := min(len(past), len(results)-1)
	if err := os.WriteFile(file, append(past, results[n]), 0o644); err != nil {
		panic(err)
	}
	fmt.Println("probe", len(past)+1)
	if results[n] == 'F' {
		return 2
	}
	return 0
}

// connect carries out each word: it listens and greets, or connects and reads. It stays until a signal comes.
func connect(words []string) int {
	for _, word := range words {
		what, address, _ := strings.Cut(word, "=")
		switch what {
		case "listen":
			l, err := net.Listen("tcp", address)
			fmt.Println(word, errorName(err))
			if err == nil {
				go greet(l)
			}
		case "dial":
			// No wait for an answer that does not come: the kernel would wait three seconds each
			// time, and a busy machine does not.
			var text string
			var err error
			quick := false
			for try := 0; try < 5 && !quick; try++ {
				began := time.Now()
				text, err = hear(address)
				quick = time.Since(began) < 2500*time.Millisecond
			}
			fmt.Println(word, errorName(err), text, quick)
		}
	}
	return run("0s", "0")
}

func greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(c, "hello from %s", l.Addr())
		c.Close()
	}
}

func hear(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	return string(text), err
}

// errorName returns the system's name for an error, such as EROFS.
func errorName(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// times returns the times at which a container said a word.
func times(log, word string) []time.Time {
	var all []time.Time
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !slices.Contains(fields, word) {
			continue
		}
		if n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
			all = append(all, time.Unix(0, n))
		}
	}
	return all
}
