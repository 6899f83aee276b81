package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kid runs in containers of the leak tests: this binary by another name. Each kind leaves as much behind as a program
// can.
func kid(args []string) int {
	signal.Ignore(syscall.SIGHUP)
	switch args[0] {
	case "web": // answers, and ends on a signal
		go endOn(syscall.SIGTERM)
		fmt.Println(http.ListenAndServe(args[1], http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		return 1
	case "named": // answers with a name, and what has begun also after a signal
		server := &http.Server{Addr: args[1], Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, args[2])
		})}
		served := make(chan error)
		go func() { served <- server.ListenAndServe() }()
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		select {
		case err := <-served:
			fmt.Println(err)
			return 1
		case <-signals:
		}
		server.Shutdown(context.Background())
	case "fetch": // gets URLs
		client := &http.Client{Timeout: 10 * time.Second}
		for _, url := range args[1:] {
			res, err := client.Get(url)
			if err != nil {
				fmt.Println(url + ": failed")
				continue
			}
			body, _ := io.ReadAll(res.Body)
			fmt.Printf("%s: %s\n", url, body)
		}
	case "daemon": // leaves a daemon in its own session, which gets no signals
		daemonize("fork")
		endOn(syscall.SIGTERM)
	case "fork":
		daemonize("deaf")
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		block()
	case "greedy": // takes shared memory of every kind and writes into its volume
		go endOn(syscall.SIGTERM)
		fmt.Println(takeSharedMemory())
		litter(args[1])
	case "size": // of the terminal it is in
		size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(size.Row, size.Col)
	case "done":
	case "ecs": // serves what ECS knows of a cluster
		go endOn(syscall.SIGTERM)
		fmt.Println(http.ListenAndServe(args[1], http.HandlerFunc(tellTasks)))
		return 1
	case "bind": // wants a port that may be taken
		l, err := net.Listen("tcp", args[1])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer l.Close()
		endOn(syscall.SIGTERM)
	}
	return 0
}

func endOn(s os.Signal) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, s)
	<-signals
	os.Exit(0)
}

func block() {
	for {
		_ = unix.Pause() // the Go runtime's own signals interrupt it
	}
}

// daemonize starts a kid in its own session and does not wait for it. "fork" does it once more and ends, as daemons do.
func daemonize(what string) {
	cmd := exec.Command("/proc/self/exe", what)
	cmd.Args[0] = "kid"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	}
}

// takeSharedMemory never gives anything back.
func takeSharedMemory() error {
	if err := os.WriteFile("/dev/shm/left", make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile("/tmp/left", nil, 0o600); err != nil {
		return err
	}
	id, err := unix.SysvShmGet(42, 1<<20, unix.IPC_CREAT|0o600)
	if err != nil {
		return fmt.Errorf("shmget: %w", err)
	}
	if _, err := unix.SysvShmAttach(id, 0, 0); err != nil {
		return fmt.Errorf("shmat: %w", err)
	}
	for name, call := range map[string][4]uintptr{
		"semget": {unix.SYS_SEMGET, 42, 3, unix.IPC_CREAT | 0o600},
		"msgget": {unix.SYS_MSGGET, 42, unix.IPC_CREAT | 0o600},
	} {
		if _, _, errno := unix.Syscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return fmt.Errorf("%s: %w", name, errno)
		}
	}
	return nil
}

// litter makes and removes files for ever, also while another process removes the directory.
func litter(dir string) {
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprint("d", i%100), fmt.Sprint("f", i%7))
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		_ = os.WriteFile(name, []byte("x"), 0o644)
		if i%20 == 0 {
			<-time.After(time.Millisecond) // others want to run, too
		}
	}
}

// fakeConsul runs as much of a Consul server as a scenario needs that asks nothing of it: it is up at once.
func fakeConsul(args []string) int {
	address := ""
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "-bind="); ok {
			address = v
		}
	}
	mux := http.NewServeMux()
	answer := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("index") > "0" { // a blocking query; nothing ever changes
				<-r.Context().Done()
			}
			w.Header().Set("X-Consul-Index", "1")
			fmt.Fprintln(w, body)
		})
	}
	answer("/v1/acl/token/self", "{}")
	answer("/v1/acl/tokens", "[]")
	answer("/v1/health/state/any", "[]")
	fmt.Println(http.ListenAndServe(net.JoinHostPort(address, "8500"), mux))
	return 1
}

// get asks a URL for the status of its answer.
func get(args []string) int {
	answer, err := http.Get(args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
	return 0
}
