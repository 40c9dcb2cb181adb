//go:build !unix

package ledger

import "time"

// Processor is 0 here: processor time is not known.
func Processor() time.Duration { return 0 }
