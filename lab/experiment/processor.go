package experiment

import (
	"time"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

// processorTime returns the processor time of this process, or the time since its start if that is unknown.
func processorTime() time.Duration {
	if d := ledger.Processor(); d > 0 {
		return d
	}
	return time.Since(began)
}

var began = time.Now()
