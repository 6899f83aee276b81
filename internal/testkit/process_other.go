//go:build !linux

package testkit

import "syscall"

// firstProcess has no meaning without pid namespaces.
func firstProcess() *syscall.SysProcAttr { return nil }
