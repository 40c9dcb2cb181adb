package drivers_test

import (
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// embedded holds the traits of both embedded platforms. Package embedded tests the end of a visibility.
var embedded = conformance.Traits{Visibility: 5 * time.Minute, Batches: true}

func TestMemory(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := drivers.Memory(m)
		return conformance.Opened(t, p, err)
	}, embedded)
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir, traits := t.TempDir(), embedded
	traits.Restart = func(t *testing.T, p *platform.Platform) *platform.Platform {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		p, err := drivers.Open(t.Context(), dir, nil)
		return conformance.Opened(t, p, err)
	}
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := drivers.Open(t.Context(), dir, m)
		return conformance.Opened(t, p, err)
	}, traits)
}
