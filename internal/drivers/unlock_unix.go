//go:build unix && !solaris && !aix

package drivers

import (
	"os"
	"syscall"
)

// unlock gives up bbolt's lock of the file, whatever else still refers to it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
