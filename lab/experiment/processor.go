package experiment

import (
	"time"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

// processorTime is the processor time that this process has used so far, or where that is not known the time since it began.
func processorTime() time.Duration {
	if d := ledger.Processor(); d > 0 {
		return d
	}
	return time.Since(began)
}

var began = time.Now()
