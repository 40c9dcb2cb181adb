//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"time"
)

// ignoreSizeSignal makes a limit on file sizes an error of the write that meets it,
// where the signal's default is to end the process.
func ignoreSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }

// cpuTime is the processor time that this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
