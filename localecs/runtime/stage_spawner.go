package runtime

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/meshtask/consul-ecs/localecs/host"
	"golang.org/x/sys/unix"
)

const maxFiles = 7

// spawnRequest is what the spawner is asked for.
type spawnRequest byte

const (
	// ownPIDs is a container whose program is PID 1.
	ownPIDs spawnRequest = 'c'
	// sharedPIDs is a container in the pid namespace of another process: the
	// last descriptor is its pidfd, and not for the container.
	sharedPIDs spawnRequest = 's'
	// pidHolder is PID 1 of a namespace that containers share. It ends, and all in there with it, when socketFD does.
	pidHolder spawnRequest = 'h'
)

// runSpawner clones containers until the simulator closes its end of the socket. Containers are its siblings, not its
// children: the simulator waits for them. The first process of a namespace could not do that, so it is not the anchor.
func runSpawner() int {
	file := os.NewFile(socketFD, "simulator")
	c, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return 1
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return 1
	}
	for {
		request, files, err := receive(conn)
		if err != nil {
			return 0
		}
		pidfd, err := clone(request, files)
		for _, fd := range files {
			unix.Close(fd)
		}
		if err != nil {
			_, _, err = conn.WriteMsgUnix([]byte(err.Error()), nil, nil)
		} else {
			_, _, err = conn.WriteMsgUnix([]byte{started}, unix.UnixRights(pidfd), nil)
			unix.Close(pidfd)
		}
		if err != nil {
			return 0
		}
	}
}

func receive(conn *net.UnixConn) (spawnRequest, []int, error) {
	body, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*maxFiles))
	_, oobn, _, _, err := conn.ReadMsgUnix(body, oob)
	if err != nil {
		return 0, nil, err
	}
	files, err := host.Descriptors(oob[:oobn])
	return spawnRequest(body[0]), files, err
}

func clone(request spawnRequest, files []int) (pidfd int, err error) {
	argv := []string{argv0}
	attr := &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, // a first stage has one thing to do
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_PARENT | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
			// Its own session: Ctrl-C at the simulator is not for containers.
			Setsid:    true,
			Pdeathsig: unix.SIGKILL,
			PidFD:     &pidfd,
		},
	}
	switch request {
	case pidHolder:
		argv = append(argv, wordAnchor)
		attr.Sys.Cloneflags = unix.CLONE_PARENT | unix.CLONE_NEWPID
	case sharedPIDs:
		last := len(files) - 1
		leave, err := shareChildren(files[last])
		if err != nil {
			return -1, err
		}
		defer leave()
		files = files[:last]
		attr.Sys.Cloneflags &^= unix.CLONE_NEWPID
		// The library would compare parents by number, see none, and kill the
		// process: only PID 1 of a namespace survives that. The anchor remains.
		attr.Sys.Pdeathsig = 0
	}
	for _, fd := range files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	_, err = syscall.ForkExec(host.SelfExe, argv, attr)
	return pidfd, err
}

// shareChildren makes this thread's children be born into the pid namespace of
// another process, until leave. Main has locked the thread.
func shareChildren(pidfd int) (leave func(), err error) {
	own, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return nil, fmt.Errorf("open own process: %w", err)
	}
	if err := unix.Setns(pidfd, unix.CLONE_NEWPID); err != nil {
		unix.Close(own)
		return nil, fmt.Errorf("enter the shared pid namespace: %w", err)
	}
	return func() {
		if unix.Setns(own, unix.CLONE_NEWPID) != nil {
			os.Exit(1) // every later container would be born in there
		}
		unix.Close(own)
	}, nil
}

func errnoOf(text string) error {
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EPERM, unix.EINVAL} {
		if text == errno.Error() {
			return errno
		}
	}
	return errors.New(text)
}

// ask asks for a process, with files as its descriptors from 0 on, and returns the pidfd of its child.
func (request spawnRequest) ask(conn *net.UnixConn, files ...*os.File) (pidfd int, err error) {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
		// The other side reads and writes like any program. Our own ends of the
		// pipes are other descriptions and stay as they are.
		if err := unix.SetNonblock(fds[i], false); err != nil {
			return -1, err
		}
	}
	if _, _, err := conn.WriteMsgUnix([]byte{byte(request)}, unix.UnixRights(fds...), nil); err != nil {
		return -1, fmt.Errorf("ask the spawner: %w", err)
	}
	body, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(body, oob)
	if errors.Is(err, io.EOF) {
		return -1, errors.New("the spawner exited")
	}
	if err != nil {
		return -1, fmt.Errorf("receive from the spawner: %w", err)
	}
	got, err := host.Descriptors(oob[:oobn])
	switch {
	case err != nil:
		return -1, err
	case len(got) != 1:
		return -1, fmt.Errorf("clone: %w", errnoOf(string(body[:n])))
	}
	return got[0], nil
}
