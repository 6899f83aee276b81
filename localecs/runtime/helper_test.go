package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/network"
	"golang.org/x/sys/unix"
)

// facts are what a program sees of itself.
type facts struct {
	PID, UID, GID int
	Groups        []int
	Cwd, Host     string
	Env           []string
	Nofile        [2]uint64
	Processes     []string
	Bounding      uint64
	NoNewPrivs    int
	Session       int
	Descriptors   []string
	Home          string
}

// helper runs as the program of the toolbox's containers: this test binary under another name.
func helper(args []string) int {
	switch args[0] {
	case "facts":
		_ = json.NewEncoder(os.Stdout).Encode(observe())
	case "block": // a Go program that does not ask for signals
		fmt.Println("ready")
		block()
	case "trap": // exits with the code given on TERM
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		fmt.Println("ready")
		<-ch
		code, _ := strconv.Atoi(args[1])
		return code
	case "signals": // names each signal; ends on TERM
		ch := make(chan os.Signal, 8)
		signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
		fmt.Println("ready")
		for s := range ch {
			fmt.Println("got", s)
			if s == syscall.SIGTERM {
				return 0
			}
		}
	case "write": // tries to write each file, reports the error
		for _, path := range args[1:] {
			err := os.WriteFile(path, []byte("written\n"), 0o644)
			var errno syscall.Errno
			errors.As(err, &errno)
			fmt.Println(path, unix.ErrnoName(errno))
		}
	case "become": // changes its user, as su-exec does, and stays
		if err := syscall.Setuid(1234); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ready")
		block()
	case "serve":
		l, err := net.Listen("tcp", args[1])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ready")
		for {
			conn, err := l.Accept()
			if err != nil {
				return 1
			}
			_, _ = io.WriteString(conn, "served\n")
			conn.Close()
		}
	case "fetch":
		conn, err := net.DialTimeout("tcp", args[1], testkit.Patience)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_, _ = io.Copy(os.Stdout, conn)
	case "bind":
		fmt.Println(syscall.Mount("/tmp", "/root", "", syscall.MS_BIND, ""))
	}
	return 0
}

func block() {
	for {
		_ = unix.Pause() // the Go runtime's own signals interrupt it
	}
}

func observe() facts {
	f := facts{PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Env: os.Environ()}
	f.Groups, _ = os.Getgroups()
	f.Cwd, _ = os.Getwd()
	f.Host, _ = os.Hostname()
	var limit unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit)
	f.Nofile = [2]uint64{limit.Cur, limit.Max}
	f.Processes, _ = filepath.Glob("/proc/[0-9]*")
	for c := range 41 {
		if set, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); set == 1 {
			f.Bounding |= 1 << c
		}
	}
	f.NoNewPrivs, _ = unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	f.Session, _ = unix.Getsid(0)
	f.Descriptors, _ = filepath.Glob("/proc/self/fd/*")
	if u, err := user.Current(); err == nil {
		f.Home = u.HomeDir
	}
	return f
}

const simulatorVariable = "LOCALECS_RUNTIME_TEST_SIMULATOR"

// simulator runs a task and waits to be killed.
func simulator() int {
	fail := func(err error) int {
		fmt.Println(err)
		return 1
	}
	f, err := network.New(network.Options{})
	if err != nil {
		return fail(err)
	}
	n, err := f.Attach("task")
	if err != nil {
		return fail(err)
	}
	r, err := New(Options{})
	if err != nil {
		return fail(err)
	}
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	img := toolboxOf(exe)
	fmt.Println("anchor", r.spawn.helpers[0].pid)
	for name, s := range map[string]Spec{
		"plain":   {Args: []string{"/bin/sleep", "1000"}},
		"user":    {Args: []string{"/bin/sleep", "1000"}, User: "5995"},
		"become":  {Args: []string{"/bin/helper", "become"}},
		"init":    {Args: []string{"/bin/sleep", "1000"}, InitProcess: true},
		"forking": {Args: sh("/bin/sleep 1000 & /bin/sleep 1000 & echo ready; wait")},
	} {
		out := newLogs()
		s.Name, s.Image, s.netNS, s.Stdout = name, img, n.File(), out
		c, err := r.Start(s)
		if err != nil {
			return fail(err)
		}
		if name == "become" || name == "forking" {
			for out.String() == "" {
				<-out.changed
			}
		}
		// A stopped process dies as well as one that runs.
		hold := map[string]func(string) (func(), bool){"forking": c.Freeze, "user": c.Freeze, "init": c.Slow}[name]
		if hold != nil {
			if _, ok := hold(""); !ok {
				return fail(fmt.Errorf("%s cannot be stopped", name))
			}
		}
		fmt.Println(name, c.PID())
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
