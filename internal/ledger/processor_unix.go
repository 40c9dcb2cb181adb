//go:build unix

package ledger

import (
	"syscall"
	"time"
)

// Processor returns the processor time, user and system, that this process has used so far; 0 if it is unknown.
// Unlike the clock it excludes the time of other processes.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
