package host

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The test binary plays the program: role run calls Run with the role that follows, which begins in Dispatch then.
func TestMain(m *testing.M) {
	Dispatch(Role{"host-test-other", nil}, Role{"host-test-code", func(args []string) int { return len(args) }})
	testkit.RunRole(map[string]func([]string) int{
		testkit.UserRole: testkit.PlayUser,
		"run":            playRun,
		"without-caps":   playWithoutCaps,
		"no-namespaces":  playNoNamespaces,
		"facts":          playFacts,
		"signals":        playSignals,
		"die":            playDie,
		"hang":           playHang,
		"adopt":          playAdopt,
	})
	os.Exit(testkit.Main(m))
}

// playRun runs a role: newuidmap, newgidmap, role, arguments.
func playRun(args []string) int {
	missing, err := MissingOnHost(SysAdmin(), NetAdmin())
	if err != nil || len(missing) == 0 {
		fmt.Println("nothing is missing:", err)
		return 1
	}
	code, err := Run(Options{
		Args: testkit.SelfArgs(args[2], args[3:]...)[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Log:       hclog.New(&hclog.LoggerOptions{Output: os.Stdout, DisableTime: true}),
		NewUIDMap: args[0], NewGIDMap: args[1], Missing: missing,
	})
	if err != nil {
		fmt.Println("refused:", err)
		return 99
	}
	return code
}

// playWithoutCaps runs as root who may not administrate, as in a container.
func playWithoutCaps(args []string) int {
	runtime.LockOSThread() // a thread has its own capabilities, and exec takes those of the caller's
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(syscall.Exec(args[0], args, os.Environ()))
	return 1
}

// playNoNamespaces runs as a user of a machine that allows no user namespaces: it is root of one that may have none
// below it.
func playNoNamespaces(args []string) int {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		fmt.Println(err)
		return 1
	}
	return playWithoutCaps(args)
}

// facts are what the program inside sees of itself.
type facts struct {
	Inside    bool
	IDs       IDs
	UID, GID  int
	Missing   []string
	Check     string
	Group     bool // leads its own process group
	Setgroups string
}

func playFacts([]string) int {
	f := facts{Inside: Inside(), UID: os.Getuid(), GID: os.Getgid(), Group: unix.Getpgrp() == os.Getpid(), Setgroups: "done"}
	f.IDs, _ = CurrentIDs()
	f.Missing, _ = MissingOnHost(SysAdmin(), NetAdmin(), SetUID(), Chown())
	if err := CheckNamespace(); err != nil {
		f.Check = err.Error()
	}
	if err := unix.Setgroups(nil); err != nil {
		f.Setgroups = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(f)
	return 42
}

// playSignals says which signals come; TERM ends it.
func playSignals([]string) int {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	fmt.Println("ready")
	for s := range ch {
		fmt.Println("got", s)
		if s == syscall.SIGTERM {
			return 7
		}
	}
	return 0
}

func playDie([]string) int {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// playHang stops itself, as Ctrl-Z would, on request.
func playHang([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("hangs", os.Getpid())
	_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	select {}
}

// playAdopt runs a command line, says its number, and waits for it and for what it leaves behind, as the first process
// of a container does: what is adopted by its own session is no orphan, and no process wakes it.
func playAdopt(args []string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	child, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("runs", child.Pid)
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			return 0
		}
	}
}
