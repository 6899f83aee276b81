//go:build !linux

package testkit

import "syscall"

// firstProcess has no meaning without pid namespaces.
func firstProcess() *syscall.SysProcAttr { return nil }

// claim does nothing: other systems have no names of sockets without files.
func claim(int) error { return nil }
