//go:build unix

package fetch

import "syscall"

// pending reports whether an idle socket has bytes to read or was closed by the server. It consumes nothing.
func pending(s syscall.Conn) bool {
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	some := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, no := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		some = no != syscall.EAGAIN && no != syscall.EWOULDBLOCK
	})
	return err != nil || some
}
