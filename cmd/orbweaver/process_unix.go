//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreSizeSignal makes a limit on file sizes an error of the write that meets it,
// where the signal's default is to end the process.
func ignoreSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
