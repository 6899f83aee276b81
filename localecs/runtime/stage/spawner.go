package stage

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxFiles is how many descriptors a container is cloned with at most.
const MaxFiles = 6

// spawner clones containers until the simulator closes its end of the socket.
// Containers are its siblings, not its children: the simulator waits for them.
// The first process of a namespace could not do that, so it is not the anchor.
func spawner() int {
	file := os.NewFile(SocketFD, "simulator")
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
		files, err := receiveFiles(conn)
		if err != nil {
			return 0
		}
		pidfd, err := cloneContainer(files)
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

func receiveFiles(conn *net.UnixConn) ([]int, error) {
	body, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*MaxFiles))
	_, oobn, _, _, err := conn.ReadMsgUnix(body, oob)
	if err != nil {
		return nil, err
	}
	return rights(oob[:oobn])
}

func rights(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		got, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

func cloneContainer(files []int) (pidfd int, err error) {
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
	for _, fd := range files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	_, err = syscall.ForkExec(SelfExe, []string{Argv0}, attr)
	return pidfd, err
}

// RequestContainer is the simulator's side: it has a container cloned with
// files as its descriptors from 0 on, and returns the pidfd of its child.
func RequestContainer(conn *net.UnixConn, files ...*os.File) (pidfd int, err error) {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
		// The other side reads and writes like any program. Our own ends of the
		// pipes are other descriptions and stay as they are.
		if err := unix.SetNonblock(fds[i], false); err != nil {
			return -1, err
		}
	}
	if _, _, err := conn.WriteMsgUnix([]byte{started}, unix.UnixRights(fds...), nil); err != nil {
		return -1, fmt.Errorf("ask the spawner: %w", err)
	}
	body, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(body, oob)
	if errors.Is(err, io.EOF) {
		return -1, errors.New("the spawner has ended")
	}
	if err != nil {
		return -1, fmt.Errorf("hear from the spawner: %w", err)
	}
	got, err := rights(oob[:oobn])
	switch {
	case err != nil:
		return -1, err
	case len(got) != 1:
		return -1, fmt.Errorf("clone: %s", body[:n])
	}
	return got[0], nil
}
