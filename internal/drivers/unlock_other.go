//go:build !unix || solaris || aix

package drivers

import "os"

// unlock does nothing: closing the file is enough here.
func unlock(*os.File) {}
