//go:build unix

package engine

import "syscall"

// openFiles returns the limit of open files of this process, sockets included.
func openFiles() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 1024 // the usual limit
	}
	return int(min(r.Cur, 1<<30))
}
