package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Start reaps every child of its process, so no test calls it in the test
// process: the test binary plays a supervisor, whose child it plays as well.
func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{
		"supervise":   playSupervise,
		"again":       playAgain,
		"early":       playEarly,
		"listen":      playListen,
		"deaf":        playDeaf,
		"thread-ends": playThreadEnds,
		"exit":        playExit,
		"sleep":       playSleep,
		"die":         playDie,
		"echo":        playEcho,
		"group":       playGroup,
		"family":      playFamily,
		"abandon":     playAbandon,
		"litter":      playLitter,
	})
	os.Exit(m.Run())
}

// playSupervise runs its arguments as the child and forwards every signal. It
// says at the end what is left.
func playSupervise(args []string) int {
	signals, stop := Subscribe()
	defer stop()
	p, err := Start(args, hclog.New(nil))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for {
		select {
		case <-p.done:
			_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			fmt.Println("left:", err)
			if os.Getpid() == 1 {
				fmt.Println("namespace:", syscall.Kill(-1, 0))
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				fmt.Println("signal after the end:", err)
			}
			return p.Wait()
		case sig := <-signals:
			send := p.Signal
			if sig == syscall.SIGHUP {
				send = p.SignalGroup
			}
			if err := send(sig.(syscall.Signal)); err != nil {
				fmt.Println(err)
			}
		}
	}
}

// playAgain runs its arguments as the child, once for each line of its input.
func playAgain(args []string) int {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		p, err := Start(args, hclog.NewNullLogger())
		if err != nil {
			fmt.Println(err)
			return 1
		}
		code := p.Wait()
		_, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		fmt.Println("code", code, "left:", err)
	}
	return 0
}

// playEarly receives a signal before it starts its child.
func playEarly(args []string) int {
	signals, stop := Subscribe()
	defer stop()
	fmt.Println("subscribed")
	bufio.NewReader(os.Stdin).ReadString('\n')
	p, err := Start(args, hclog.NewNullLogger())
	if err != nil {
		return 1
	}
	p.Signal((<-signals).(syscall.Signal))
	return p.Wait()
}

// playListen says which signals the queue delivers.
func playListen([]string) int {
	signals, _ := Subscribe()
	fmt.Println("ready")
	for sig := range signals {
		fmt.Println(int(sig.(syscall.Signal)))
	}
	return 0
}

// playDeaf lets signals pile up until its input ends, then says which came.
func playDeaf([]string) int {
	signals, _ := Subscribe()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	seen := map[os.Signal]bool{}
	for len(seen) < 2 {
		seen[<-signals] = true
	}
	fmt.Println(len(seen))
	return 0
}

// playThreadEnds starts its child from a goroutine whose OS thread ends.
func playThreadEnds(args []string) int {
	started := make(chan *Process)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with us
		p, err := Start(args, hclog.NewNullLogger())
		if err != nil {
			fmt.Println(err)
		}
		started <- p
	}()
	return (<-started).Wait()
}

func playExit(args []string) int {
	code, _ := strconv.Atoi(args[0])
	return code
}

func playSleep([]string) int {
	fmt.Println("asleep")
	select {}
}

// playDie kills itself with the signal.
func playDie(args []string) int {
	n, _ := strconv.Atoi(args[0])
	syscall.Kill(os.Getpid(), syscall.Signal(n))
	select {}
}

// playEcho says what it is, then which signals it gets; it ends with its
// input, or with USR2.
func playEcho(args []string) int {
	ch := make(chan os.Signal, 64)
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM)
	fmt.Println("echo", args, os.Getenv("FLAVOUR"), "leader", syscall.Getpgrp() == os.Getpid())
	go func() {
		for sig := range ch {
			fmt.Println("got", sig)
			if sig == syscall.SIGUSR2 {
				os.Exit(9)
			}
		}
	}()
	if len(args) > 0 && args[0] == "second" {
		select {} // it has no input
	}
	io.Copy(os.Stdout, os.Stdin)
	return 5
}

// playGroup starts a second echo in its own process group.
func playGroup(args []string) int {
	spawn(false, testkit.SelfArgs("echo", "second")...)
	return playEcho(args)
}

// playFamily leaves descendants behind that ignore signals, in sessions of
// their own, three generations deep.
func playFamily(args []string) int {
	depth, _ := strconv.Atoi(args[0])
	if depth > 0 {
		spawn(true, testkit.SelfArgs("family", strconv.Itoa(depth-1))...)
	}
	if depth == 3 {
		bufio.NewReader(os.Stdin).ReadString('\n')
		return 7
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	fmt.Println("generation", depth)
	select {}
}

// playAbandon leaves a deaf process behind, in its own session, which holds the standard
// output.
func playAbandon([]string) int {
	r, w, _ := os.Pipe()
	args := testkit.SelfArgs("family", "0")
	attr := &os.ProcAttr{Files: []*os.File{nil, w, os.Stderr, os.Stdout}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if _, err := os.StartProcess(args[0], args, attr); err != nil {
		fmt.Println(err)
	}
	line, _ := bufio.NewReader(r).ReadString('\n')
	fmt.Print(line)
	return 8
}

// playLitter makes orphans that end at once, waits until they have ended, and
// runs itself until its input ends.
func playLitter(args []string) int {
	if len(args) > 0 { // the middle one: its children become orphans
		for range 10 {
			spawn(true, testkit.SelfArgs("exit", "0")...)
		}
		return 0
	}
	r, w, _ := os.Pipe()
	attr := &os.ProcAttr{Files: []*os.File{nil, w, os.Stderr}}
	middle, err := os.StartProcess(os.Args[0], testkit.SelfArgs("litter", "middle"), attr)
	if err != nil {
		fmt.Println(err)
	}
	w.Close()
	middle.Wait()
	io.Copy(io.Discard, r) // ends when the last orphan has ended
	fmt.Println("littered")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// spawn starts a process and forgets it.
func spawn(session bool, args ...string) {
	_, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: session},
	})
	if err != nil {
		fmt.Println(err)
	}
}
