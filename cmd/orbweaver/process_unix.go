//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreSizeSignal turns the signal of a file size limit, which ends the process by default, into an error of
// the write.
func ignoreSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
