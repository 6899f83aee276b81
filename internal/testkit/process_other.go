//go:build !linux

package testkit

import "syscall"

// firstProcess returns nil: there are no pid namespaces.
func firstProcess() *syscall.SysProcAttr { return nil }

// claim does nothing: other systems have no names of sockets without files.
func claim(int) error { return nil }
