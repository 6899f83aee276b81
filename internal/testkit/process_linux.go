package testkit

import (
	"fmt"
	"os"
	"syscall"
)

// firstProcess makes the child PID 1 of a new pid namespace, by means of a
// user namespace when we are not root.
func firstProcess() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// claim keeps a port from other callers of FreePorts until this process ends, by the name
// of a socket: the port itself is for the server that a test starts.
func claim(port int) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@consul-ecs-test-port-%d", port)})
	if err != nil {
		syscall.Close(fd)
	}
	return err
}
