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

func opened(t *testing.T, p *platform.Platform, err error) *platform.Platform {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestMemory(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := drivers.Memory(m)
		return opened(t, p, err)
	}, embedded)
}

func TestFolder(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := drivers.Open(t.Context(), t.TempDir(), m)
		return opened(t, p, err)
	}, embedded)
}
