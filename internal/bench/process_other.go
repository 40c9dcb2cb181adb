//go:build !unix

package main

import "time"

// cpuTime is 0 here: processor time is not known.
func cpuTime() time.Duration { return 0 }
