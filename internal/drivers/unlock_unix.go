//go:build unix && !solaris && !aix

package drivers

import (
	"os"
	"syscall"
)

// unlock releases bbolt's lock on the file, even while a mapping still refers to the file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
