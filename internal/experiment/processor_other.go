//go:build !unix

package experiment

import "time"

// processorTime is the time since this process began, where that of its processors is not known.
func processorTime() time.Duration { return time.Since(began) }

var began = time.Now()
