package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownNetwork marks the process that plays a test of OwnNetwork.
const ownNetwork = "TESTKIT_OWN_NETWORK"

// OwnNetwork runs the calling test again, alone, as root of a network namespace with nothing but loopback addresses,
// and without CAP_NET_ADMIN. It serves tests that listen where other programs may. Every address of networks, such as
// 10.0.0.1/16, is one of this machine there. It returns true there. Here it returns false when that run has ended, and
// the test has its outcome.
func OwnNetwork(t *testing.T, networks ...string) bool {
	t.Helper()
	if os.Getenv(ownNetwork) == t.Name() {
		return true
	}
	if os.Getuid() != 0 {
		Missing(t, "network namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-test.short=%t", testing.Short()))
	cmd.Env = append(os.Environ(), ownNetwork+"="+t.Name())
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		if err := leaveNetwork(networks); err != nil {
			result <- err
			return
		}
		result <- cmd.Run()
	}()
	if err := <-result; err != nil {
		t.Errorf("in its own network namespace: %v", err)
	}
	return false
}

// leaveNetwork gives the calling thread and its children a network namespace
// whose loopback interface is up and has the networks, and takes the right to change it
// from the children.
func leaveNetwork(networks []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	errs := []error{netlink.LinkSetUp(lo)}
	for _, n := range networks {
		address, err := netlink.ParseAddr(n)
		if err == nil {
			err = netlink.AddrAdd(lo, address)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_ADMIN, 0, 0, 0))...)
}
