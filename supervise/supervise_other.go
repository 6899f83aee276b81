//go:build !linux

package supervise

import (
	"errors"
	"os"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// Process is a started child; there is none outside Linux.
type Process struct{}

var errLinuxOnly = errors.New("supervising a process needs Linux: run this command inside the task's container")

// Start returns an error: process groups, adoption and the parent-death signal
// are Linux's.
func Start([]string, hclog.Logger) (*Process, error) { return nil, errLinuxOnly }

// Wait returns 1.
func (p *Process) Wait() int { return 1 }

// Signal returns an error.
func (p *Process) Signal(syscall.Signal) error { return errLinuxOnly }

// SignalGroup returns an error.
func (p *Process) SignalGroup(syscall.Signal) error { return errLinuxOnly }

func subscribed() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
