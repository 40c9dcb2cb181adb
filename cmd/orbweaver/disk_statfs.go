//go:build linux || darwin || freebsd

package main

import "syscall"

// diskSpace returns the free and the total bytes of the file system that holds a folder.
func diskSpace(dir string) (free, total int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	block := float64(s.Bsize)
	return int64(float64(s.Bavail) * block), int64(float64(s.Blocks) * block), true
}
