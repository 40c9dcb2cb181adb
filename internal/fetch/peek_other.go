//go:build !unix

package fetch

import "syscall"

// pending always returns false on this system. A request over a connection that the server has closed fails and
// is sent again.
func pending(syscall.Conn) bool { return false }
