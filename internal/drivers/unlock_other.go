//go:build !unix || solaris || aix

package drivers

import "os"

// unlock does nothing: here closing the file is enough.
func unlock(*os.File) {}
