//go:build gcp

package drivers

import (
	"context"

	"github.com/orbweaver/orbweaver/internal/drivers/gcp"
	"github.com/orbweaver/orbweaver/platform"
)

// openGCP opens a platform on Google Cloud.
func openGCP(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error) {
	return gcp.Open(ctx, location, meter)
}
