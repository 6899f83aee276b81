//go:build !linux

package subcommand

import "time"

func releaseProgramAfter(time.Duration) {}
