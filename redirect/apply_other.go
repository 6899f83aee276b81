//go:build !linux

package redirect

import "errors"

var errLinuxOnly = errors.New("redirecting traffic needs Linux: run this command inside the task's container")

// Apply returns an error: the rules are Linux's.
func Apply([]Table) error { return errLinuxOnly }

// Remove returns an error.
func Remove() error { return errLinuxOnly }

// Suspend returns an error.
func Suspend() error { return errLinuxOnly }

// Resume returns an error.
func Resume() error { return errLinuxOnly }

// HasIPv6 returns an error.
func HasIPv6() (bool, error) { return false, errLinuxOnly }
