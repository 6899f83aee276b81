package network

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
)

var errUnfinished = errors.New("the function inside the network namespace did not return")

// visit runs fn on a thread that enter has moved into a namespace. The thread
// returns to the scheduler only after it has left the namespace; otherwise it stays
// locked to its goroutine and ends with it. Sockets that fn opens stay inside,
// goroutines that fn starts do not run there.
func visit(home netns.NsHandle, enter, fn func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errUnfinished
		defer func() { result <- err }()
		runtime.LockOSThread()
		if e := enter(); e != nil {
			runtime.UnlockOSThread()
			err = fmt.Errorf("enter network namespace: %w", e)
			return
		}
		err = fn()
		if e := netns.Set(home); e != nil {
			err = errors.Join(err, fmt.Errorf("leave network namespace: %w", e))
			return
		}
		runtime.UnlockOSThread()
	}()
	return <-result
}

// newNamespace makes an anonymous network namespace. Its only reference is the
// returned descriptor.
func newNamespace(home netns.NsHandle, owner string) (*os.File, error) {
	created := netns.None()
	make := func() error {
		var err error
		created, err = netns.New()
		return err
	}
	err := visit(home, make, func() error { return nil })
	if !created.IsOpen() {
		return nil, err
	}
	file := os.NewFile(uintptr(created), "netns-"+owner)
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
