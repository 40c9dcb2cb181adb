//go:build !unix

package ledger

import "time"

// Processor returns 0: the processor time is unknown here.
func Processor() time.Duration { return 0 }
