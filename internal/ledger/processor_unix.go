//go:build unix

package ledger

import (
	"syscall"
	"time"
)

// Processor is the processor time, user and system, that this process has used so far; 0 where
// it is not known. Unlike the clock it does not count the time that other processes had.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
